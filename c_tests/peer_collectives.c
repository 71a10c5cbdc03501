/* Broken if this fails: a collective or a team over ranks that share no memory hangs, or is refused by another status than
 * LLCL_ERR_UNSUPPORTED, or without a sentence; or ranks of one node have no collectives of their own any more.
 * ranks: 2 3
 * threads: yes
 */
#include "shared.h"

static void refused(llcl_status_t status, int by_this_rank)
{
    CHECK_STATUS(status, LLCL_ERR_UNSUPPORTED);
    CHECK(strstr(llcl_last_error(), by_this_rank ? "another node than rank" : "") != NULL);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer, n = 0, far = 0, near[64], all[64];
    llcl_team_t *team = NULL, *world = NULL;
    for (peer = 0; peer < size; peer++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        CHECK_OK(llcl_query_peer(context, peer, &info));
        all[peer] = peer;
        if (info.transport == LLCL_TRANSPORT_WIRE)
            far++;
        else
            near[n++] = peer;
    }
    CHECK(n + far == size);
    if (far == 0) {
        CHECK_OK(llcl_barrier(context));
    } else {
        refused(llcl_barrier(context), 0);
        refused(llcl_barrier(context), 0);
        CHECK_OK(llcl_team_world(context, &world));
        refused(llcl_team_barrier(world), 0);
        refused(llcl_team_create(context, all, size, &team), size == 2);
    }
    CHECK_OK(llcl_team_create(context, near, n, &team));
    for (peer = 0; peer < 10; peer++)
        CHECK_OK(llcl_team_barrier(team));
    CHECK_EQUAL(llcl_team_rank(team), me - near[0]);
    CHECK_OK(llcl_team_free(team));
}

TEST_MAIN(run)
