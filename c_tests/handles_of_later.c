/* Broken if this fails: the handle of a region, team or plan that was freed names a later one: to
 * free it again is not refused, and ends the later one.
 * ranks: 1 2
 * threads: yes
 */
#include "coll.h"

#define TURNS 20

static void regions(llcl_context_t *context)
{
    llcl_region_t *freed = NULL, *later = NULL;
    int turn;
    CHECK_OK(llcl_region_allocate(context, 64, 0, &freed));
    CHECK_OK(llcl_region_free(freed));
    for (turn = 0; turn < TURNS; turn++) {
        CHECK_OK(llcl_region_allocate(context, 64, 0, &later));
        CHECK_STATUS(llcl_region_free(freed), LLCL_ERR_STATE);
        CHECK_EQUAL(llcl_region_size(freed), 0);
        CHECK_EQUAL(llcl_region_size(later), 64);
        CHECK_OK(llcl_region_free(later));
    }
}

static void plans(llcl_team_t *team)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *freed = NULL, *later = NULL;
    int turn;
    params.team = team;
    CHECK_OK(llcl_barrier_init(&params, &freed));
    CHECK_OK(llcl_coll_free(freed));
    for (turn = 0; turn < TURNS; turn++) {
        CHECK_OK(llcl_barrier_init(&params, &later));
        CHECK_STATUS(llcl_coll_start(freed), LLCL_ERR_STATE);
        CHECK_STATUS(llcl_coll_free(freed), LLCL_ERR_STATE);
        CHECK_OK(llcl_coll_start(later));
        CHECK_OK(llcl_coll_wait(later, TEST_PATIENCE_NS));
        CHECK_OK(llcl_coll_free(later));
    }
}

static void teams(llcl_team_t *world)
{
    llcl_team_t *freed = NULL, *later = NULL;
    int turn;
    CHECK_OK(llcl_team_split(world, 1, 0, &freed));
    CHECK_OK(llcl_team_free(freed));
    for (turn = 0; turn < TURNS; turn++) {
        CHECK_OK(llcl_team_split(world, 1, 0, &later));
        CHECK_STATUS(llcl_team_free(freed), LLCL_ERR_STATE);
        CHECK_EQUAL(llcl_team_size(freed), 0);
        CHECK_OK(llcl_team_barrier(later));
        CHECK_OK(llcl_team_free(later));
    }
}

static void run(llcl_context_t *context)
{
    llcl_team_t *world = coll_world(context);
    regions(context);
    plans(world);
    teams(world);
}

TEST_MAIN(run)
