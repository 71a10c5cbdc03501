/* Broken if this fails: a lock made of llcl_compare_swap does not exclude: what is read and written
 * under it is not ordered by it.
 * ranks: 2 3 5
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define ROUNDS 60

static void lock(llcl_context_t *context, llcl_remote_t word, uint64_t mine)
{
    llcl_compare_swap_params_t swap = {0};
    uint64_t old = 1;
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    swap.target = word;
    swap.desired = mine;
    swap.result = &old;
    for (;;) {
        CHECK_OK(llcl_compare_swap(context, &swap));
        if (old == 0)
            return;
        CHECK(old != mine && old <= llcl_size(context));
        CHECK(now_ns() < end);
        sched_yield();
    }
}

static void unlock(llcl_context_t *context, llcl_remote_t word, uint64_t mine)
{
    llcl_compare_swap_params_t swap = {0};
    uint64_t old = 0;
    swap.target = word;
    swap.compare = mine;
    swap.result = &old;
    CHECK_OK(llcl_compare_swap(context, &swap));
    CHECK_EQUAL(old, mine);
}

static void run(llcl_context_t *context)
{
    uint64_t me = llcl_rank(context) + 1;
    int kind, round, i;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, mine;
        llcl_read_params_t read = {0};
        llcl_write_params_t write = {0};
        share(context, kind, 4096, &target);
        region_make(context, REGISTERED, 256, &mine);
        read.source = write.destination = remote_at(&target, 0, 64);
        read.destination = write.source = llcl_region_local(mine.region, 0);
        read.size = write.size = 256;
        for (round = 0; round < ROUNDS; round++) {
            lock(context, target.remote[0], me);
            CHECK_OK(llcl_read(context, &read));
            for (i = 0; i < 32; i++) {
                CHECK_EQUAL(mine.words[i], mine.words[0]);
                if (i > 0)
                    mine.words[i]++;
            }
            mine.words[0]++;
            CHECK_OK(llcl_write(context, &write));
            unlock(context, target.remote[0], me);
        }
        CHECK_OK(llcl_flush_all(context));
        fence(context);
        if (llcl_rank(context) == 0)
            CHECK_EQUAL(word_get(&target.words[8]), (uint64_t)ROUNDS * llcl_size(context));
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
