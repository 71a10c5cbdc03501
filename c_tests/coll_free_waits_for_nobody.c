/* Broken if this fails: making or freeing a plan or a team waits for another rank's action, here
 * for the answer to an active message, and so for ever if that rank waits for this one.
 * ranks: 2
 * modes: auto offload
 * engines: offload
 * threads: yes
 * timeout: 10
 */
#include "am.h"

struct rank {
    llcl_am_t *kept;
    uint64_t handled;
};

static void keep(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    rank->kept = llcl_am_retain(message);
    word_set(&rank->handled, 1);
}

static void use_a_plan(llcl_team_t *team)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    params.on_complete = llcl_no_completion();
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, -1));
    CHECK_OK(llcl_coll_free(plan));
}

static void run(llcl_context_t *context)
{
    struct rank rank = {0};
    uint64_t ended = 0;
    llcl_team_t *world = NULL, *copy = NULL;
    uint32_t round, me = llcl_rank(context);
    CHECK_OK(llcl_am_register(context, 1, keep, &rank));
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (me == 0) {
        llcl_am_params_t message = {0};
        message.peer = 1;
        message.id = 1;
        message.kind = LLCL_AM_MEDIUM;
        message.on_local = llcl_no_completion();
        message.on_complete = llcl_store_on(&ended);
        CHECK_OK(llcl_am_async(context, &message));
    } else {
        AWAIT(&rank.handled, 1);
    }
    CHECK_OK(llcl_team_world(context, &world));
    for (round = 0; round < 3; round++) {
        use_a_plan(world);
        CHECK_OK(llcl_team_split(world, 0, 0, &copy));
        use_a_plan(copy);
        CHECK_OK(llcl_team_free(copy));
    }
    CHECK_EQUAL(word_get(&ended), 0);
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (me == 1)
        CHECK_OK(llcl_am_release(rank.kept));
    else
        AWAIT(&ended, 1);
}

TEST_MAIN(run)
