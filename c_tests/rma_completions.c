/* Broken if this fails: one of the four kinds of completion does not do what the header says, on
 * on_local or on_complete, at success or at failure; or on_complete comes before on_local.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "shared.h"

struct order {
    uint64_t clock;
    uint64_t local_at, complete_at;
};

static void local_done(void *data, llcl_status_t status)
{
    struct order *order = data;
    CHECK_OK(status);
    word_set(&order->local_at, word_add(&order->clock, 1) + 1);
}

static void complete_done(void *data, llcl_status_t status)
{
    struct order *order = data;
    CHECK_OK(status);
    word_set(&order->complete_at, word_add(&order->clock, 1) + 1);
}

static void write_with(llcl_context_t *context, struct shared *target, struct shared *mine,
                       uint32_t flags, llcl_completion_t on_local, llcl_completion_t on_complete)
{
    llcl_write_params_t write = {0};
    write.peer = (llcl_rank(context) + 1) % llcl_size(context);
    write.flags = flags;
    write.source = llcl_region_local(mine->region, 0);
    write.destination = remote_at(target, write.peer, 0);
    write.size = 512;
    write.on_local = on_local;
    write.on_complete = on_complete;
    POST(llcl_try_write_async(context, &write));
}

static void kinds(llcl_context_t *context, struct shared *target, struct shared *mine, uint32_t flags)
{
    uint64_t stored[2] = {0, 0}, added[2] = {5, 1000};
    struct order order = {0, 0, 0};
    CHECK_EQUAL(llcl_no_completion().kind, LLCL_COMPLETE_NONE);
    CHECK_EQUAL(llcl_callback(local_done, &order).kind, LLCL_COMPLETE_CALL);
    CHECK_EQUAL(llcl_store_on(stored).kind, LLCL_COMPLETE_STORE);
    CHECK_EQUAL(llcl_add_on(added).kind, LLCL_COMPLETE_ADD);
    write_with(context, target, mine, flags, llcl_no_completion(), llcl_no_completion());
    write_with(context, target, mine, flags, llcl_store_on(&stored[0]), llcl_store_on(&stored[1]));
    AWAIT(&stored[1], 1);
    AWAIT(&stored[0], 1);
    CHECK(stored[0] == 1 && stored[1] == 1);
    write_with(context, target, mine, flags, llcl_add_on(&added[0]), llcl_add_on(&added[1]));
    write_with(context, target, mine, flags, llcl_add_on(&added[0]), llcl_add_on(&added[1]));
    CHECK_OK(llcl_wait_word(context, &added[1], 1002, TEST_PATIENCE_NS));
    AWAIT(&added[0], 7);
    CHECK(added[0] == 7 && added[1] == 1002);
    write_with(context, target, mine, flags, llcl_callback(local_done, &order),
               llcl_callback(complete_done, &order));
    AWAIT(&order.complete_at, 1);
    CHECK(order.local_at >= 1 && order.local_at < order.complete_at);
}

/* A failure that is known at the call is its answer and nothing fires; one that comes later is told
 * by the completion. Either way the status is the same. */
static void failures(llcl_context_t *context, struct shared *target, struct shared *mine,
                     uint32_t flags)
{
    uint64_t stored[2] = {0, 0}, added[2] = {5, 5};
    llcl_write_params_t write = {0};
    llcl_status_t status;
    write.peer = (llcl_rank(context) + 1) % llcl_size(context);
    write.flags = flags;
    write.source = llcl_region_local(mine->region, 0);
    write.destination = remote_at(target, write.peer, 4000);
    write.size = 512;
    write.on_local = llcl_store_on(&stored[0]);
    write.on_complete = llcl_store_on(&stored[1]);
    while ((status = llcl_try_write_async(context, &write)) > 0)
        sched_yield();
    if (status == LLCL_OK) {
        AWAIT(&stored[1], 1);
        CHECK_EQUAL(stored[1], (uint64_t)(int64_t)LLCL_ERR_RANGE);
    } else {
        CHECK_STATUS(status, LLCL_ERR_RANGE);
        CHECK(stored[0] == 0 && stored[1] == 0);
    }
    write.on_local = llcl_add_on(&added[0]);
    write.on_complete = llcl_add_on(&added[1]);
    while ((status = llcl_try_write_async(context, &write)) > 0)
        sched_yield();
    if (status == LLCL_OK) {
        AWAIT(&added[1], LLCL_WORD_FAILED); /* the bit and the count change in one step */
        CHECK_EQUAL(added[1], LLCL_WORD_FAILED + 6);
    } else {
        CHECK_STATUS(status, LLCL_ERR_RANGE);
        CHECK(added[0] == 5 && added[1] == 5);
    }
}

static void run(llcl_context_t *context)
{
    uint32_t flags;
    int kind, round;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, mine;
        share(context, kind, 4096, &target);
        region_make(context, kind, 4096, &mine);
        for (round = 0; round < 50; round++) {
            for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++) {
                kinds(context, &target, &mine, flags);
                failures(context, &target, &mine, flags);
            }
        }
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
