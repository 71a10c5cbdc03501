/* Broken if this fails: llcl_flush or llcl_flush_all returns before everything accepted has
 * completed: a completion fires later, or the peer does not see the data.
 * ranks: 1 2 3 5
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define OPERATIONS 300u

static void rounds(llcl_context_t *context, int kind, int all)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), i, peer, round;
    struct shared target, mine;
    struct tally tally = {0, 0, 0};
    size_t slot = OPERATIONS * 64;
    share(context, kind, size * slot, &target);
    region_make(context, kind, slot, &mine);
    for (round = 0; round < 4; round++) {
        uint64_t before = word_get(&tally.fired);
        pattern_fill(mine.bytes, slot, me + round);
        for (i = 0; i < OPERATIONS; i++) {
            for (peer = 0; peer < size; peer++) {
                llcl_write_params_t write = {0};
                write.peer = peer;
                write.flags = (i + round) % 3 == 0 ? LLCL_FLAG_DEFER : 0;
                write.source = llcl_region_local(mine.region, i * 64);
                write.destination = remote_at(&target, peer, me * slot + i * 64);
                write.size = 64;
                write.on_complete = count_in(&tally);
                POST(llcl_try_write_async(context, &write));
            }
        }
        if (all)
            CHECK_OK(llcl_flush_all(context));
        else
            for (peer = 0; peer < size; peer++)
                CHECK_OK(llcl_flush(context, peer));
        CHECK_EQUAL(word_get(&tally.fired), before + (uint64_t)OPERATIONS * size);
        CHECK_EQUAL(tally.failed, 0);
        fence(context);
        for (peer = 0; peer < size; peer++)
            CHECK(pattern_holds(target.bytes + peer * slot, slot, peer + round));
        fence(context);
    }
    share_end(context, &target);
    region_drop(&mine);
}

static void run(llcl_context_t *context)
{
    rounds(context, ALLOCATED, 0);
    rounds(context, REGISTERED, 0);
    rounds(context, ALLOCATED, 1);
    rounds(context, REGISTERED, 1);
    /* Nothing under way: returns at once. */
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_flush(context, 0));
}

TEST_MAIN(run)
