/* Broken if this fails: after a failed round of llcl_X_async the ranks use its plans in different
 * turns, or keep different plans. A rank that comes late knows of the failure before it calls, and
 * must count the call as the others do. Else a later call waits for ever.
 * ranks: 2 3
 * modes: auto
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define DEPTH 2u

/* Starts the sum of `count` numbers, and returns the status of its end. */
static llcl_status_t add(llcl_team_t *team, llcl_local_t memory, uint64_t count)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    uint64_t done = 0;
    params.team = team;
    params.send = params.receive = memory;
    params.receive.offset += 64;
    params.count = count;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.depth = DEPTH;
    params.on_complete = llcl_store_on(&done);
    POST(llcl_allreduce_async(&params));
    AWAIT(&done, 1);
    return word_get(&done) == 1 ? LLCL_OK : (llcl_status_t)(int64_t)word_get(&done);
}

/* The sum of one number by the plan that has failed, or fails at rank 0. Where ranks share memory,
 * rank 0's step fails before the others call. */
static void fail(llcl_context_t *context, llcl_team_t *team, llcl_local_t memory)
{
    int first = llcl_rank(context) == 0, late = !coll_is_posted(context);
    if (late && !first)
        fence(context);
    CHECK_STATUS(add(team, memory, 1), LLCL_ERR_KEY);
    if (late && first)
        fence(context);
}

static void run(llcl_context_t *context)
{
    llcl_team_t *team = coll_world(context);
    struct shared region, other;
    llcl_local_t first, second;
    uint32_t round;
    share(context, ALLOCATED, 128, &region);
    share(context, ALLOCATED, 128, &other);
    first = llcl_region_local(region.region, 0);
    second = llcl_region_local(other.region, 0);
    /* Two plans of one number, which rounds use in turn, and then one of two numbers. */
    CHECK_OK(add(team, first, 1));
    CHECK_OK(add(team, second, 1));
    CHECK_OK(add(team, second, 2));
    fence(context);
    region_drop(&region);
    fence(context);
    for (round = 0; round < 2; round++) {
        fail(context, team, round == 0 && llcl_rank(context) == 0 ? first : second);
        /* The other plan has not failed. */
        CHECK_OK(add(team, second, 1));
    }
    /* There is room for the plans of two kinds of calls: those of two numbers are displaced. */
    CHECK_OK(add(team, second, 3));
    fail(context, team, second);
    CHECK_OK(add(team, second, 1));
    fence(context);
    region_drop(&other);
}

int main(void)
{
    coll_default("LLCL_COLL_CACHE", "2");
    return test_main(run, NULL);
}
