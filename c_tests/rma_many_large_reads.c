/* Broken if this fails: of many reads of several fragments each some never end, because reads that
 * have reserved slots for their bytes wait behind reads that wait for slots.
 * cma: off
 * threads: yes
 */
#include "shared.h"

#define READS 16u
#define BYTES (96u << 10)

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    uint64_t ended = 0;
    uint32_t i, peer = (llcl_rank(context) + 1) % llcl_size(context);
    share(context, REGISTERED, BYTES, &target);
    region_make(context, ALLOCATED, READS * BYTES, &mine);
    memset(target.bytes, (int)(1 + llcl_rank(context)), BYTES);
    fence(context);
    for (i = 0; i < READS; i++) {
        llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
        read.peer = peer;
        read.source = remote_at(&target, peer, 0);
        read.destination = llcl_region_local(mine.region, i * BYTES);
        read.size = BYTES;
        read.on_complete = llcl_add_on(&ended);
        CHECK_OK(llcl_read_async(context, &read));
    }
    CHECK_OK(llcl_wait_word(context, &ended, READS, TEST_PATIENCE_NS));
    for (i = 0; i < READS * BYTES; i++)
        if (mine.bytes[i] != 1 + peer)
            CHECK_EQUAL(mine.bytes[i], 1 + peer);
    fence(context);
    share_end(context, &target);
    region_drop(&mine);
}

TEST_MAIN(run)
