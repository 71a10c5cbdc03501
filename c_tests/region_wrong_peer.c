/* Broken if this fails: an address of one rank, used with the number of another, reaches some
 * memory of that other; or a peer number that does not exist is not refused.
 * ranks: 2 3 5
 * cma: on off
 * threads: yes
 */
#include "wild.h"

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    struct wild wild = {0};
    uint32_t size = llcl_size(context), owner, peer;
    int kind;
    region_make(context, ALLOCATED, 4096, &mine);
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = mine.words;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, 4096, &target);
        for (owner = 0; owner < size; owner++) {
            wild.remote = remote_at(&target, owner, 0);
            wild.signal = remote_at(&target, owner, 128);
            for (peer = 0; peer < size; peer++) {
                if (peer == owner)
                    continue;
                wild.peer = peer;
                wild.flags = 0;
                WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
                wild.flags = LLCL_FLAG_DEFER;
                WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
                CHECK(llcl_remote_pointer(context, peer, wild.remote, 8) == NULL);
            }
        }
        wild.peer = size;
        WILD_REFUSED(context, &wild, LLCL_ERR_INVALID);
        wild.peer = UINT32_MAX;
        WILD_REFUSED(context, &wild, LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_flush(context, size), LLCL_ERR_INVALID);
        fence(context);
        CHECK(bytes_are(target.bytes, target.size, 0));
        share_end(context, &target);
    }
    region_drop(&mine);
}

TEST_MAIN(run)
