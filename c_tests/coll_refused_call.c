/* If one rank is refused, all are: also where the call itself is wrong, because there is no place
 * for the plan, or a blocking call brings a completion. If this were broken, the other ranks would
 * wait for ever.
 * ranks: 2 3
 * modes: auto
 * threads: yes */
#include "coll.h"

static void run(llcl_context_t *context)
{
    llcl_team_t *team;
    llcl_coll_t *plan;
    llcl_coll_params_t params = {0};
    uint64_t word = 0;
    int wrong = llcl_rank(context) == 1;
    CHECK_OK(llcl_team_world(context, &team));
    params.team = team;
    CHECK_STATUS(llcl_barrier_init(&params, wrong ? NULL : &plan), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), wrong ? "plan is NULL" : "rank 1") != NULL);
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    if (wrong)
        params.on_complete = llcl_store_on(&word);
    CHECK_STATUS(llcl_allreduce(&params), LLCL_ERR_INVALID);
    params.on_complete = llcl_no_completion();
    params.flags = wrong ? 8 : 0;
    CHECK_STATUS(llcl_allreduce(&params), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), wrong ? "flags has 0x8," : "rank 1") != NULL);
    params.flags = 0;
    CHECK_OK(llcl_allreduce(&params));
    CHECK_OK(llcl_team_barrier(team));
}

TEST_MAIN(run)
