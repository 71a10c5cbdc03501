/* Broken if this fails: a rank that runs the hub of its node in a second context leaves that
 * context early, and another one waits there in llcl_allgather_bytes or llcl_finalize for ever.
 * There is a context for each rank, which leaves it early.
 * ranks: 2 3
 * modes: auto
 * threads: yes
 */
#include "test.h"

static void others_end(llcl_context_t *context, uint32_t who)
{
    int64_t give_up = now_ns() + TEST_PATIENCE_NS;
    llcl_status_t status;
    while (llcl_peer_alive(context, who) == LLCL_OK && now_ns() < give_up)
        sleep_ms(1);
    CHECK_STATUS(llcl_peer_alive(context, who), LLCL_ERR_PEER_DEAD);
    /* Where the hub has ended, nobody is left who could answer. */
    status = llcl_allgather_bytes_within(context, NULL, 0, NULL, TEST_PATIENCE_NS);
    CHECK(status == LLCL_ERR_PEER_DEAD || status == LLCL_ERR_SYSTEM);
    status = llcl_finalize_within(context, TEST_PATIENCE_NS);
    CHECK(status == LLCL_OK || status == LLCL_ERR_SYSTEM);
}

static void run(llcl_context_t *context)
{
    uint32_t who, me = llcl_rank(context), size = llcl_size(context);
    llcl_context_t *left_by[8];
    CHECK(size <= 8);
    for (who = 0; who < size; who++) {
        CHECK_OK(llcl_context_duplicate(context, NULL, &left_by[who]));
        CHECK_OK(llcl_barrier(left_by[who]));
    }
    /* A rank that leaves may fail a barrier which others have not finished. */
    CHECK_OK(llcl_barrier(context));
    /* It returns when the hub in this process has ended: over several nodes after two seconds, or
     * when the other ranks of the node have left. */
    CHECK_STATUS(llcl_finalize_within(left_by[me], 0), LLCL_ERR_TIMEOUT);
    CHECK_OK(llcl_barrier(context));
    for (who = 0; who < size; who++)
        if (who != me)
            others_end(left_by[who], who);
    CHECK_OK(llcl_barrier(context));
}

TEST_MAIN(run)
