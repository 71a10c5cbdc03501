/* Broken if this fails: a message for a number that has no handler at the peer is lost silently,
 * crashes the peer or reaches another handler, instead of LLCL_ERR_NO_HANDLER at its sender; also
 * after a handler was removed, also at a rank that never registered one.
 * ranks: 1 2 3
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static llcl_am_params_t message(uint32_t peer, uint32_t id, const struct shared *mine,
                                const struct shared *there, uint32_t kind, const uint64_t *header)
{
    llcl_am_params_t am = am_to(peer, id, header, 8);
    am.kind = kind;
    am.payload_size = 8;
    if (kind == LLCL_AM_MEDIUM)
        am.payload = header;
    else
        am.source = llcl_region_local(mine->region, 0);
    if (kind == LLCL_AM_LONG)
        am.destination = remote_at(there, peer, 0);
    return am;
}

/* Refused at the call, or, accepted, completed so: in every tier, and each completion once. */
static void expect(llcl_context_t *context, llcl_am_params_t am, llcl_status_t expected)
{
    struct tally complete = {0, 0, 0}, local = {0, 0, 0};
    llcl_status_t status;
    CHECK_STATUS(llcl_am(context, &am), expected);
    if (expected != LLCL_OK)
        CHECK(strlen(llcl_last_error()) > 3);
    am.on_complete = count_in(&complete);
    am.on_local = count_in(&local);
    while ((status = llcl_try_am_async(context, &am)) > 0)
        sched_yield();
    if (status == LLCL_OK) {
        AWAIT(&complete.fired, 1);
        AWAIT(&local.fired, 1);
        CHECK(complete.fired == 1 && local.fired == 1);
        status = (llcl_status_t)complete.last;
    } else {
        CHECK(complete.fired == 0 && local.fired == 0);
    }
    CHECK_STATUS(status, expected);
}

static void everywhere(llcl_context_t *context, uint32_t id, const struct shared *mine,
                       const struct shared *there, llcl_status_t expected)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), i, kind, flags;
    uint64_t header = 1;
    for (i = 0; i < size; i++) {
        for (kind = LLCL_AM_MEDIUM; kind <= LLCL_AM_BULK; kind++) {
            for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++) {
                llcl_am_params_t am = message((me + i) % size, id, mine, there, kind, &header);
                am.flags = flags;
                expect(context, am, expected);
            }
        }
    }
}

static void run(llcl_context_t *context)
{
    struct shared mine, there;
    uint64_t first = 0, second = 0, *counts[2];
    uint32_t size = llcl_size(context), i;
    uint64_t header = 1, each = (uint64_t)llcl_size(context) * 3 * 2 * 2;
    counts[0] = &first;
    counts[1] = &second;
    share(context, ALLOCATED, 64, &there);
    region_make(context, ALLOCATED, 64, &mine);
    /* Nobody has registered anything. */
    everywhere(context, 0, &mine, &there, LLCL_ERR_NO_HANDLER);
    fence(context);
    am_register(context, 20, handle, counts[0]);
    am_register(context, 255, handle, counts[1]);
    fence(context);
    everywhere(context, 21, &mine, &there, LLCL_ERR_NO_HANDLER);
    everywhere(context, 0, &mine, &there, LLCL_ERR_NO_HANDLER);
    everywhere(context, 254, &mine, &there, LLCL_ERR_NO_HANDLER);
    CHECK(word_get(&first) == 0 && word_get(&second) == 0);
    fence(context);
    everywhere(context, 20, &mine, &there, LLCL_OK);
    fence(context);
    CHECK_EQUAL(word_get(&first), each);
    am_register(context, 20, NULL, NULL);
    fence(context);
    everywhere(context, 20, &mine, &there, LLCL_ERR_NO_HANDLER);
    everywhere(context, 255, &mine, &there, LLCL_OK);
    /* One-way: at the call, or counted at the receiver; it harms nothing that comes after. */
    for (i = 0; i < size; i++) {
        llcl_am_params_t am = am_to(i, 33, &header, 8);
        llcl_status_t status = llcl_am_async(context, &am);
        CHECK(status == LLCL_OK || status == LLCL_ERR_NO_HANDLER);
    }
    everywhere(context, 255, &mine, &there, LLCL_OK);
    fence(context);
    CHECK_EQUAL(word_get(&first), each);
    CHECK_EQUAL(word_get(&second), 2 * each);
    am_register(context, 20, handle, counts[0]);
    fence(context);
    everywhere(context, 20, &mine, &there, LLCL_OK);
    fence(context);
    CHECK_EQUAL(word_get(&first), 2 * each);
    share_end(context, &there);
    region_drop(&mine);
}

TEST_MAIN(run)
