/* Broken if this fails: a rank of a world of two keeps 16 MiB or more resident, after it has used
 * every kind of operation.
 * ranks: 2
 * cma: on off
 */
#include "wild.h"

static void run(llcl_context_t *context)
{
    uint32_t peer = 1 - llcl_rank(context);
    struct shared target, mine;
    struct wild wild = {0};
    int kind, i;
    long kib;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, 4096, &target);
        region_make(context, kind, 4096, &mine);
        wild.peer = peer;
        wild.local = llcl_region_local(mine.region, 0);
        wild.memory = mine.words;
        wild.remote = remote_at(&target, peer, 0);
        wild.signal = remote_at(&target, peer, 64);
        for (i = 0; i < 2000; i++) {
            wild.operation = i % WILD_OPERATIONS;
            wild.tier = i % TIERS;
            wild.flags = i % 5 == 0 ? LLCL_FLAG_DEFER : 0;
            wild.on_complete = llcl_no_completion();
            POST(wild_post(context, &wild));
        }
        CHECK_OK(llcl_flush_all(context));
        share_end(context, &target);
        region_drop(&mine);
    }
    kib = resident_kib();
    printf("resident: %ld KiB\n", kib);
    CHECK(kib < 16 * 1024);
}

TEST_MAIN(run)
