/* If one rank is refused, all are: also where the call itself is wrong, because there is no place
 * for the plan, or a blocking call brings a completion. If this were broken, the other ranks would
 * wait for ever. And the next call that is right is done.
 * ranks: 2 3
 * modes: auto
 * threads: yes */
#include "coll.h"

/* A v form, for which the ranks vote: the refusal costs no plan that they have kept. */
static void v_form(llcl_team_t *team, int wrong)
{
    llcl_coll_params_t params = {0};
    uint64_t counts[COLL_MOST], offsets[COLL_MOST], word = 0;
    uint32_t rank, size = llcl_team_size(team);
    char mine = 5, all[COLL_MOST];
    for (rank = 0; rank < size; rank++) {
        counts[rank] = 1;
        offsets[rank] = rank;
    }
    params.team = team;
    params.type = LLCL_TYPE_U8;
    params.count = 1;
    params.send = llcl_local_address(&mine);
    params.receive = llcl_local_address(all);
    params.receive_counts = counts;
    params.receive_offsets = offsets;
    CHECK_OK(llcl_allgatherv(&params));
    if (wrong)
        params.on_complete = llcl_store_on(&word);
    CHECK_STATUS(llcl_allgatherv(&params), LLCL_ERR_INVALID);
    params.on_complete = llcl_no_completion();
    CHECK_OK(llcl_allgatherv(&params));
    CHECK(all[0] == 5 && all[size - 1] == 5);
}

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
    /* Of several that are refused, the lowest is named at every rank that is not. */
    CHECK_STATUS(llcl_barrier_init(&params, llcl_rank(context) > 0 ? NULL : &plan), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), llcl_rank(context) > 0 ? "plan is NULL" : "rank 1") != NULL);
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
    v_form(team, wrong);
    CHECK_OK(llcl_team_barrier(team));
}

TEST_MAIN(run)
