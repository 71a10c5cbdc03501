/* Broken if this fails: operations that only the owner of the memory can do starve behind others
 * that are posted again and again by their own completions.
 * ranks: 2
 * modes: auto offload
 * cma: off
 * timeout: 20
 */
#include "shared.h"

#define OPERATIONS 64u
#define SIZE 32768u
#define ROUNDS 60u

struct rank {
    llcl_context_t *context;
    struct operation {
        struct rank *rank;
        llcl_write_params_t write;
        uint64_t count;
    } operations[OPERATIONS];
    uint64_t total, open;
};

/* Posts the same again, until all together have gone through often enough. */
static void again(void *data, llcl_status_t status)
{
    struct operation *operation = data;
    struct rank *rank = operation->rank;
    CHECK_OK(status);
    word_add(&operation->count, 1);
    if (word_add(&rank->total, 1) < OPERATIONS * ROUNDS) {
        status = llcl_try_write_async(rank->context, &operation->write);
        if (status == LLCL_OK)
            return;
        CHECK(status > 0);
    }
    word_add(&rank->open, (uint64_t)-1);
}

static void keep_writing(llcl_context_t *context, const struct shared *target, struct shared *mine)
{
    struct rank *rank = calloc(1, sizeof *rank);
    uint64_t least = UINT64_MAX, most = 0;
    uint32_t i;
    CHECK(rank != NULL);
    rank->context = context;
    rank->open = OPERATIONS;
    for (i = 0; i < OPERATIONS; i++) {
        llcl_write_params_t *write = &rank->operations[i].write;
        rank->operations[i].rank = rank;
        write->peer = 1;
        write->source = llcl_region_local(mine->region, 0);
        write->destination = remote_at(target, 1, 0);
        write->size = SIZE;
        write->on_local = llcl_no_completion();
        write->on_complete = llcl_callback(again, &rank->operations[i]);
        CHECK_OK(llcl_write_async(context, write));
    }
    while (word_get(&rank->open) != 0)
        CHECK_OK(llcl_progress(context));
    for (i = 0; i < OPERATIONS; i++) {
        uint64_t count = rank->operations[i].count;
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    printf("each of %u writes went through %llu to %llu times\n", OPERATIONS,
           (unsigned long long)least, (unsigned long long)most);
    CHECK(least >= ROUNDS / 2 && most <= ROUNDS * 2);
    free(rank);
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    share(context, REGISTERED, SIZE, &target);
    region_make(context, ALLOCATED, SIZE, &mine);
    if (llcl_rank(context) == 0)
        keep_writing(context, &target, &mine);
    fence(context);
    region_drop(&mine);
    share_end(context, &target);
}

TEST_MAIN(run)
