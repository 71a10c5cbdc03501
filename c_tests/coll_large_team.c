/* Broken if this fails: in a team of more ranks than know each other (more than 64) a collective
 * hangs or brings a wrong result, also past ranks that do not call the library; or its plans take
 * memory for each rank of the team.
 * ranks: 70
 * modes: auto
 * timeout: 60
 */
#include "coll.h"

#define COUNT 4u

static llcl_coll_t *make(llcl_team_t *team, int operation, struct shared *input, struct shared *output)
{
    llcl_coll_params_t params = {0};
    llcl_coll_info_t info = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.count = COUNT;
    params.send = llcl_region_local(input->region, 0);
    params.receive = llcl_region_local(output->region, 0);
    CHECK_OK(coll_init(operation, 0, &params, &plan));
    info.struct_size = sizeof info;
    CHECK_OK(llcl_coll_query(plan, &info));
    CHECK_EQUAL(info.any_rank, 0);
    CHECK(info.memory < 40000);
    return plan;
}

static void run(llcl_context_t *context)
{
    struct shared input, output;
    llcl_team_t *team = coll_world(context);
    uint32_t me = llcl_rank(context), ranks = llcl_size(context), round, i;
    llcl_coll_t *barrier, *sum, *broadcast;
    region_make(context, ALLOCATED, 64, &input);
    region_make(context, ALLOCATED, 64, &output);
    barrier = make(team, BARRIER, &input, &output);
    sum = make(team, ALLREDUCE, &input, &output);
    broadcast = make(team, BROADCAST, &input, &output);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < COUNT; i++)
            input.words[i] = me + i + round;
        CHECK_OK(llcl_coll_start(sum));
        /* Some compute; the others need their steps. */
        if (me % 50 == 7)
            sleep_ms(20);
        CHECK_OK(llcl_coll_wait(sum, 3 * TEST_PATIENCE_NS));
        for (i = 0; i < COUNT; i++)
            CHECK_EQUAL(output.words[i], (uint64_t)ranks * (ranks - 1) / 2 + ranks * (i + round));
        CHECK_OK(llcl_coll_start(barrier));
        CHECK_OK(llcl_coll_wait(barrier, 3 * TEST_PATIENCE_NS));
        if (me == 0)
            output.words[COUNT - 1] = 77 + round;
        CHECK_OK(llcl_coll_start(broadcast));
        CHECK_OK(llcl_coll_wait(broadcast, 3 * TEST_PATIENCE_NS));
        CHECK_EQUAL(output.words[COUNT - 1], 77 + round);
    }
    CHECK_OK(llcl_coll_free(barrier));
    CHECK_OK(llcl_coll_free(sum));
    CHECK_OK(llcl_coll_free(broadcast));
    fence(context);
    region_drop(&input);
    region_drop(&output);
}

TEST_MAIN(run)
