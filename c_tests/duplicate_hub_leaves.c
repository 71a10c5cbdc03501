/* Broken if this fails: a rank that runs the hub of its node in a second context leaves that
 * context early, and another one waits there in llcl_allgather_bytes or llcl_finalize for ever; or
 * a rank finds that its hub has ended, which goes on. There is a context for each rank, which
 * leaves it early.
 * ranks: 2 3
 * modes: auto
 * threads: yes
 */
#include "test.h"

/* The lowest rank of this rank's node. */
static uint32_t lowest_here(llcl_context_t *context)
{
    uint32_t peer = 0, me = llcl_rank(context);
    llcl_peer_info_t own = LLCL_PEER_INFO_INIT, info = LLCL_PEER_INFO_INIT;
    CHECK_OK(llcl_query_peer(context, me, &own));
    for (CHECK_OK(llcl_query_peer(context, 0, &info)); info.node != own.node;)
        CHECK_OK(llcl_query_peer(context, ++peer, &info));
    return peer;
}

/* `ended`: the hub of this rank has ended, so nobody is left who could answer. */
static void others_end(llcl_context_t *context, uint32_t who, int ended)
{
    int64_t give_up = now_ns() + TEST_PATIENCE_NS;
    while (llcl_peer_alive(context, who) == LLCL_OK && now_ns() < give_up)
        sleep_ms(1);
    CHECK_STATUS(llcl_peer_alive(context, who), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_allgather_bytes_within(context, NULL, 0, NULL, TEST_PATIENCE_NS),
                 ended ? LLCL_ERR_SYSTEM : LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_finalize_within(context, TEST_PATIENCE_NS), ended ? LLCL_ERR_SYSTEM : LLCL_OK);
}

static void run(llcl_context_t *context)
{
    uint32_t who, me = llcl_rank(context), size = llcl_size(context), hub;
    /* Else all ranks are of one machine, which has one hub, also if a wire joins them. */
    int machines = getenv("LLCL_NODE_ID") != NULL;
    llcl_context_t *left_by[8];
    CHECK(size <= 8);
    CHECK_OK(llcl_connect(context, NULL, 0));
    hub = lowest_here(context);
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
    /* Over several nodes the hub of a node ends with its rank, and all hubs with that of rank 0. */
    for (who = 0; who < size; who++)
        if (who != me)
            others_end(left_by[who], who, machines && (who == hub || who == 0));
    CHECK_OK(llcl_barrier(context));
}

TEST_MAIN(run)
