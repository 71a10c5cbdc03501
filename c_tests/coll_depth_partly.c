/* Broken if this fails: where one of two rounds of a plan has ended and the other is under way, a
 * wait that is over too early counts as the wait for its round, so that the next one waits for
 * another round; or llcl_coll_free, which is refused, frees a part of the plan.
 * ranks: 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define SHORT_NS 2000000
#define TURNS 4

static void wait_for_one(llcl_coll_t *plan)
{
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    CHECK_STATUS(llcl_coll_wait(plan, SHORT_NS), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_RETRY_BUSY);
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *plan = NULL;
    int turn, late = llcl_rank(context) != 0;
    params.team = coll_world(context);
    params.depth = 2;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    for (turn = 0; turn < TURNS; turn++) {
        /* Rank 0 is two rounds ahead, then one, then none. */
        if (!late) {
            CHECK_OK(llcl_coll_start(plan));
            CHECK_OK(llcl_coll_start(plan));
            CHECK_STATUS(llcl_coll_wait(plan, SHORT_NS), LLCL_ERR_TIMEOUT);
            CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_TIMEOUT);
        }
        fence(context);
        if (late)
            CHECK_OK(llcl_coll_start(plan));
        if (!late)
            wait_for_one(plan);
        fence(context);
        if (late)
            CHECK_OK(llcl_coll_start(plan));
        if (late)
            CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    }
    CHECK_OK(llcl_coll_free(plan));
}

TEST_MAIN(run)
