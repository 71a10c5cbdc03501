/* Broken if this fails: an operation of size 0 touches memory, never completes, or skips the check
 * of its addresses.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), kind, flags;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, mine;
        share(context, (int)kind, 100, &target);
        region_make(context, (int)kind, 100, &mine);
        memset(mine.bytes, 0x77, 100);
        for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++) {
            struct tally tally = {0, 0, 0};
            llcl_write_params_t write = {0};
            llcl_read_params_t read = {0};
            llcl_write_small_params_t small = {0};
            write.peer = read.peer = small.peer = peer;
            write.flags = read.flags = small.flags = flags;
            write.on_complete = read.on_complete = small.on_complete = count_in(&tally);
            write.on_local = count_in(&tally);
            /* The end of a region is an address of size 0. */
            write.source = read.destination = llcl_region_local(mine.region, 100);
            write.destination = read.source = small.destination = remote_at(&target, peer, 100);
            POST(llcl_try_write_async(context, &write));
            POST(llcl_try_read_async(context, &read));
            small.source = NULL;
            POST(llcl_try_write_small_async(context, &small));
            AWAIT(&tally.fired, 4);
            CHECK_EQUAL(tally.failed, 0);
            write.on_local = write.on_complete = read.on_complete = llcl_no_completion();
            write.destination.offset = read.source.offset = 101;
            CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_RANGE);
            CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_RANGE);
            write.destination.offset = read.source.offset = 0;
            write.source.offset = read.destination.offset = 101;
            CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_RANGE);
            CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_RANGE);
            write.source.offset = read.destination.offset = 0;
            write.destination.key = read.source.key = 0;
            CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_KEY);
            CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_KEY);
        }
        fence(context);
        CHECK(bytes_are(target.bytes, 100, 0));
        CHECK(bytes_are(mine.bytes, 100, 0x77));
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
