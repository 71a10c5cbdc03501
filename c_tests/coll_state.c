/* Broken if this fails: a call that does not fit a plan's state (started twice, waited for without
 * a start, freed under way or twice, made inside a callback) is not answered with LLCL_ERR_STATE,
 * or does harm; or "not yet" is not told by LLCL_ERR_TIMEOUT and LLCL_RETRY_BUSY.
 * ranks: 1 2 3
 * engines: offload thread
 * cma: on off
 * threads: yes
 */
#include "coll.h"

/* Rank 0's part of a barrier that the others start only after the next llcl_allgather_bytes. */
static void under_way(llcl_coll_t *plan)
{
    int64_t begin;
    CHECK_OK(llcl_coll_start(plan));
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_RETRY_BUSY);
    CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_TIMEOUT);
    begin = now_ns();
    CHECK_STATUS(llcl_coll_wait(plan, 3000000), LLCL_ERR_TIMEOUT);
    CHECK(now_ns() - begin >= 3000000);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_RETRY_BUSY);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
}

static void at_rest(llcl_coll_t *plan)
{
    CHECK_STATUS(llcl_coll_test(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(plan, -1), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(plan, 1000), LLCL_ERR_STATE);
}

static void life_of_a_plan(llcl_context_t *context, llcl_team_t *team)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    llcl_coll_info_t info;
    uint32_t round;
    params.team = team;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    at_rest(plan);
    for (round = 1; round <= 3; round++) {
        if (llcl_rank(context) == 0 && llcl_size(context) > 1)
            under_way(plan);
        fence(context);
        if (llcl_rank(context) != 0 || llcl_size(context) == 1)
            CHECK_OK(llcl_coll_start(plan));
        if (round % 2)
            CHECK_OK(llcl_coll_wait(plan, -1));
        else
            while (llcl_coll_test(plan) == LLCL_RETRY_BUSY)
                sched_yield();
        at_rest(plan);
        CHECK_EQUAL(coll_info(plan).rounds, round);
        fence(context);
    }
    /* An ended round that nobody has waited for is still not to be followed. */
    CHECK_OK(llcl_coll_start(plan));
    fence(context);
    sleep_ms(1);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    fence(context);
    CHECK_OK(llcl_coll_free(plan));
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_STATUS(llcl_coll_query(plan, &info), LLCL_ERR_STATE);
}

static void nulls(llcl_team_t *team)
{
    llcl_coll_params_t params = {0};
    llcl_coll_info_t info = {0};
    llcl_coll_t *plan = NULL;
    CHECK_STATUS(llcl_coll_start(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_test(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_wait(NULL, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_free(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_query(NULL, &info), LLCL_ERR_INVALID);
    params.team = team;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_STATUS(llcl_coll_query(plan, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_query(plan, &info), LLCL_ERR_INVALID); /* struct_size is 0 */
    CHECK_OK(llcl_coll_free(plan));
}

/* ---- inside a callback ---- */

struct inside {
    llcl_context_t *context;
    llcl_team_t *team;
    llcl_team_t *spare;
    llcl_coll_t *idle, *own;
    uint64_t done, spare_freed;
};

static void look(void *data, llcl_status_t status)
{
    struct inside *in = data;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    llcl_team_t *team = NULL;
    int operation, varied;
    CHECK_OK(status);
    params.team = in->team;
    params.type = LLCL_TYPE_I32;
    params.op = LLCL_OP_ADD;
    for (operation = 0; operation < OPERATIONS; operation++)
        for (varied = 0; varied <= coll_operations[operation].has_varied; varied++) {
            CHECK_STATUS(coll_init(operation, varied, &params, &plan), LLCL_ERR_STATE);
            CHECK_STATUS(coll_now(operation, varied, &params), LLCL_ERR_STATE);
        }
    CHECK(plan == NULL);
    CHECK_STATUS(llcl_team_split(in->team, 0, 0, &team), LLCL_ERR_STATE);
    CHECK(team == NULL);
    CHECK_STATUS(llcl_coll_free(in->idle), LLCL_ERR_STATE);
    status = llcl_team_free(in->spare);
    word_set(&in->spare_freed, status == LLCL_OK);
    CHECK(status == LLCL_OK || status == LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(in->own, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(in->own, -1), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_test(in->idle), LLCL_ERR_STATE);
    CHECK_EQUAL(coll_info(in->idle).rounds, 0);
    CHECK_EQUAL(llcl_team_rank(in->team), llcl_rank(in->context));
    CHECK_OK(llcl_coll_test(in->own));
    CHECK_OK(llcl_coll_start(in->idle));
    word_set(&in->done, 1);
}

static void inside_a_callback(llcl_context_t *context, llcl_team_t *team)
{
    struct inside in = {0};
    llcl_coll_params_t params = {0};
    in.context = context;
    in.team = team;
    params.team = team;
    CHECK_OK(llcl_team_split(team, 0, 0, &in.spare));
    CHECK_OK(llcl_team_barrier(in.spare));
    CHECK_OK(llcl_barrier_init(&params, &in.idle));
    params.on_complete = llcl_callback(look, &in);
    CHECK_OK(llcl_barrier_init(&params, &in.own));
    CHECK_OK(llcl_coll_start(in.own));
    AWAIT(&in.done, 1);
    CHECK_OK(llcl_coll_wait(in.idle, TEST_PATIENCE_NS));
    fence(context);
    /* A refused free has not ended half of the team. */
    if (!in.spare_freed) {
        CHECK_OK(llcl_team_barrier(in.spare));
        CHECK_OK(llcl_team_free(in.spare));
    }
    CHECK_OK(llcl_coll_free(in.idle));
    CHECK_OK(llcl_coll_free(in.own));
}

static void run(llcl_context_t *context)
{
    llcl_team_t *team = coll_world(context);
    life_of_a_plan(context, team);
    nulls(team);
    inside_a_callback(context, team);
    fence(context);
}

TEST_MAIN(run)
