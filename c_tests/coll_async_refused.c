/* Broken if this fails: a call llcl_X_async that one rank is refused changes which plans that rank
 * keeps, or whose turn it is. The next call then finds its plan at one rank only, and the others
 * wait for ever.
 * ranks: 2 3
 * modes: auto
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

static __thread uint32_t depth;

static llcl_coll_params_t sum_of(llcl_team_t *team, uint64_t numbers, uint64_t *memory)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    params.team = team;
    params.send = llcl_local_address(memory);
    params.receive = llcl_local_address(memory + 8);
    params.count = numbers;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.depth = depth;
    return params;
}

/* A sum of so many numbers. */
static void add(llcl_team_t *team, uint64_t numbers)
{
    uint64_t memory[16] = {1}, done = 0;
    llcl_coll_params_t params = sum_of(team, numbers, memory);
    params.on_complete = llcl_add_on(&done);
    POST(llcl_allreduce_async(&params));
    AWAIT(&done, 1);
    CHECK_EQUAL(word_get(&done), 1);
    CHECK_EQUAL(memory[8], llcl_team_size(team));
}

/* Rank 0 is refused. */
static void refused(llcl_context_t *context, llcl_team_t *team)
{
    uint64_t memory[16] = {0}, done = 0;
    llcl_coll_params_t params = sum_of(team, 1, memory);
    params.send.key = 0x12345678;
    params.on_complete = llcl_add_on(&done);
    if (llcl_rank(context) == 0) {
        llcl_status_t status;
        /* While the thread that has made the plans still works, a call is accepted unchecked. */
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        while ((status = llcl_allreduce_async(&params)) > 0)
            sched_yield();
        CHECK_STATUS(status, LLCL_ERR_KEY);
    }
    CHECK_EQUAL(word_get(&done), 0);
}

static void run(llcl_context_t *context)
{
    llcl_team_t *team = coll_world(context);
    int round;
    add(team, 1);
    add(team, 2);
    refused(context, team);
    /* There is room for two plans: this one displaces that of one number at every rank. */
    add(team, 3);
    add(team, 1);
    /* Two plans in turn for one call: its rounds come to the same one at every rank. */
    depth = 2;
    for (round = 0; round < 5; round++) {
        add(team, 1);
        if (round == 1)
            refused(context, team);
    }
}

int main(void)
{
    coll_default("LLCL_COLL_CACHE", "2");
    return test_main(run, NULL);
}
