/* Broken if this fails: one rank has no memory for the vote of a v form, and the other ranks wait
 * for ever. Rank 0 has less and less memory left for plans, from turn to turn.
 * ranks: 2
 * modes: auto
 */
#include "coll.h"

#define STEP 128u
#define TURNS 64u

static llcl_coll_params_t broadcast_of(llcl_team_t *team, llcl_local_t buffer, uint64_t count)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    params.team = team;
    params.receive = buffer;
    params.type = LLCL_TYPE_U8;
    params.count = count;
    params.flags = LLCL_COLL_REBIND;
    return params;
}

/* The bytes for plans that are not in use, by the message of a plan that needs too many. */
static uint64_t left(llcl_team_t *team)
{
    llcl_coll_params_t params = broadcast_of(team, llcl_local_address((void *)4096), 1 << 30);
    llcl_coll_t *plan = NULL;
    const char *used;
    params.flags = 0;
    CHECK_STATUS(llcl_broadcast_init(&params, &plan), LLCL_ERR_NO_MEMORY);
    used = strstr(llcl_last_error(), "needed and ");
    return used ? ((uint64_t)1 << 20) - strtoull(used + strlen("needed and "), NULL, 10) : 0;
}

static void run(llcl_context_t *context)
{
    llcl_team_t *world = coll_world(context);
    uint32_t me = llcl_rank(context), turn, refused = 0;
    uint64_t counts[2] = {1, 1}, offsets[2] = {0, 1}, free_bytes[2];
    char *heap = calloc(1, 1 << 20), sent = 1, received[2];
    struct shared region;
    CHECK(heap != NULL);
    region_make(context, ALLOCATED, 1 << 20, &region);
    for (turn = 0; turn < TURNS; turn++) {
        llcl_local_t buffer = me == 0 ? llcl_local_address(heap) : llcl_region_local(region.region, 0);
        llcl_coll_params_t params;
        llcl_coll_t *plan = NULL;
        llcl_team_t *team = NULL;
        llcl_status_t status, statuses[2];
        uint64_t mine;
        CHECK_OK(llcl_team_split(world, 0, 0, &team));
        mine = left(world);
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, free_bytes));
        CHECK(free_bytes[0] > 100000 && free_bytes[0] <= 1 << 20);
        /* Rank 0 has a copy of its buffer, which is not memory of a region. */
        params = broadcast_of(world, buffer, (free_bytes[0] - 8000) / STEP * STEP + turn * STEP);
        CHECK_OK(llcl_broadcast_init(&params, &plan));
        status = me == 0 ? llcl_coll_start(plan) : LLCL_OK;
        CHECK_OK(llcl_allgather_bytes(context, &status, sizeof status, statuses));
        if (statuses[0] == LLCL_OK) {
            if (me == 1)
                CHECK_OK(llcl_coll_start(plan));
            CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        }
        params = broadcast_of(team, llcl_local_address(received), 1);
        params.flags = 0;
        params.send = llcl_local_address(&sent);
        params.receive_counts = counts;
        params.receive_offsets = offsets;
        status = llcl_gatherv(&params);
        CHECK(status == LLCL_OK || status == LLCL_ERR_NO_MEMORY);
        CHECK_OK(llcl_allgather_bytes(context, &status, sizeof status, statuses));
        CHECK(statuses[0] == statuses[1]);
        refused += status != LLCL_OK;
        CHECK_OK(llcl_coll_free(plan));
        CHECK_OK(llcl_team_free(team));
        fence(context);
    }
    CHECK(refused > 0 && refused < TURNS);
    region_drop(&region);
    free(heap);
}

int main(void)
{
    coll_default("LLCL_COLL_MEMORY", "1");
    return test_main(run, NULL);
}
