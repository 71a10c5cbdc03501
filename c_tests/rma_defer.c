/* Broken if this fails: with LLCL_FLAG_DEFER a completion fires inside the call that posted it, so
 * that a caller who holds a lock its callback needs would lock itself out.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "wild.h"

static __thread int inside;

struct watch {
    uint64_t fired, inside;
};

static void fire(void *data, llcl_status_t status)
{
    struct watch *watch = data;
    CHECK_OK(status);
    if (inside)
        word_add(&watch->inside, 1);
    word_add(&watch->fired, 1);
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    int kind, round;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, mine;
        struct watch watch = {0, 0};
        struct wild wild = {0};
        uint64_t posted = 0;
        share(context, kind, 4096, &target);
        region_make(context, ALLOCATED, 4096, &mine);
        wild.peer = peer;
        wild.flags = LLCL_FLAG_DEFER;
        wild.local = llcl_region_local(mine.region, 0);
        wild.remote = remote_at(&target, peer, 0);
        wild.signal = remote_at(&target, peer, 64);
        wild.on_complete = llcl_callback(fire, &watch);
        for (round = 0; round < 200; round++) {
            for (wild.operation = 0; wild.operation < WILD_OPERATIONS; wild.operation++) {
                llcl_status_t status;
                wild.tier = TIER_TRY;
                wild.memory = &mine.words[8 + wild.operation];
                do {
                    inside = 1;
                    status = wild_post(context, &wild);
                    inside = 0;
                } while (status > 0 && sched_yield() == 0);
                CHECK_OK(status);
                posted++;
            }
        }
        AWAIT(&watch.fired, posted);
        CHECK_EQUAL(watch.fired, posted);
        CHECK_EQUAL(watch.inside, 0);
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
