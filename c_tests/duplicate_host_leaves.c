/* Broken if this fails: llcl_finalize_within waits longer than it may at the rank that serves the
 * others of a second context; or these cannot reach each other any more, or not finalize, after it
 * has left. On a busy machine that rank may take longer in some of its four tries.
 * ranks: 3
 * modes: auto offload
 * threads: yes
 * timeout: 40
 */
#include "test.h"

/* Longer than that rank waits for others that leave at the same time, which is 2 s. */
#define WHILE_NS INT64_C(2500000000)
#define SOON_NS INT64_C(1800000000)
#define ROUNDS 4

static void stays(llcl_context_t *second, const llcl_remote_t *all)
{
    uint32_t rank = llcl_rank(second);
    int64_t end = now_ns() + WHILE_NS;
    llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
    out.peer = 3 - rank;
    out.destination = llcl_at(all[out.peer], 8 * rank);
    out.size = 8;
    while (now_ns() < end) {
        CHECK_OK(llcl_write_value(second, &out));
        CHECK_OK(llcl_flush(second, out.peer));
        CHECK_OK(llcl_peer_alive(second, out.peer));
        sleep_ms(20);
    }
    end = now_ns() + TEST_PATIENCE_NS;
    while (llcl_peer_alive(second, 0) == LLCL_OK && now_ns() < end)
        sleep_ms(20);
    CHECK_STATUS(llcl_peer_alive(second, 0), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_finalize_within(second, TEST_PATIENCE_NS));
}

/* Rank 0 leaves a second context early. Returns whether it was soon. */
static int round_of(llcl_context_t *context)
{
    llcl_context_t *second = NULL;
    llcl_region_t *region = NULL;
    llcl_remote_t all[8];
    int soon = 0, told[8];
    CHECK_OK(llcl_context_duplicate(context, NULL, &second));
    CHECK_OK(llcl_region_allocate_shared(second, 64, &region, all));
    CHECK_OK(llcl_barrier(second));
    /* Rank 0 leaves at once, also if signals of its barrier are still under way to the others. */
    CHECK_OK(llcl_barrier(context));
    if (llcl_rank(context) == 0) {
        int64_t begin = now_ns();
        CHECK_STATUS(llcl_finalize_within(second, 0), LLCL_ERR_TIMEOUT);
        soon = now_ns() - begin < SOON_NS;
    } else {
        stays(second, all);
    }
    CHECK_OK(llcl_allgather_bytes(context, &soon, sizeof soon, told));
    return told[0];
}

static void run(llcl_context_t *context)
{
    int round = 0;
    while (!round_of(context))
        CHECK(++round < ROUNDS);
}

TEST_MAIN(run)
