/* Broken if this fails: fewer rounds than `depth` says can be under way, or more; rounds end in
 * another order or with each other's data; or a plan of some depth cannot be waited for, told of,
 * or freed.
 * ranks: 1 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define DEPTH 8u
#define TURNS 3u

struct job {
    llcl_context_t *context;
    struct shared flags;
    uint64_t turn;
};

/* All but rank 0 go on when rank 0 has told them to: no round of rank 0's can end before. */
static void hold(struct job *job)
{
    job->turn++;
    if (llcl_rank(job->context) != 0)
        AWAIT(job->flags.words, job->turn);
}

static void let_go(struct job *job)
{
    uint32_t rank;
    for (rank = 1; llcl_rank(job->context) == 0 && rank < llcl_size(job->context); rank++) {
        llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
        write.peer = rank;
        write.size = 8;
        write.destination = job->flags.remote[rank];
        write.value = job->turn;
        CHECK_OK(llcl_write_value(job->context, &write));
    }
}

/* Eight barriers, one started after the other, without and with a plan. */
static void barriers(struct job *job, llcl_team_t *team)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *plan = NULL;
    llcl_coll_info_t info = {0}, shallow = {0};
    uint64_t ended = 0, turn, i;
    int held = llcl_rank(job->context) == 0 && llcl_size(job->context) > 1;
    params.team = team;
    params.depth = DEPTH;
    params.on_complete = llcl_add_on(&ended);
    for (turn = 1; turn <= TURNS; turn++) {
        hold(job);
        for (i = 0; i < DEPTH; i++)
            POST(llcl_barrier_async(&params));
        if (held) {
            CHECK_EQUAL(word_get(&ended), (turn - 1) * DEPTH);
            CHECK_STATUS(llcl_barrier_async(&params), LLCL_RETRY_BUSY);
        }
        let_go(job);
        AWAIT(&ended, turn * DEPTH);
        CHECK_EQUAL(word_get(&ended), turn * DEPTH);
    }
    params.on_complete = llcl_no_completion();
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_ERR_STATE);
    for (turn = 1; turn <= TURNS; turn++) {
        hold(job);
        for (i = 0; i < DEPTH; i++)
            CHECK_OK(llcl_coll_start(plan));
        CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
        CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
        if (held) {
            CHECK_STATUS(llcl_coll_test(plan), LLCL_RETRY_BUSY);
            CHECK_STATUS(llcl_coll_wait(plan, 1000000), LLCL_ERR_TIMEOUT);
        }
        let_go(job);
        for (i = 0; i < DEPTH; i++)
            if (i % 3 == 2)
                POST(llcl_coll_test(plan));
            else
                CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    }
    info.struct_size = shallow.struct_size = sizeof info;
    CHECK_OK(llcl_coll_query(plan, &info));
    CHECK_EQUAL(info.rounds, TURNS * DEPTH);
    CHECK_OK(llcl_coll_free(plan));
    params.depth = 0;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_coll_query(plan, &shallow));
    CHECK_EQUAL(info.memory, DEPTH * shallow.memory);
    CHECK_OK(llcl_coll_free(plan));
}

/* Rounds with buffers of their own, of which every rank is some ahead of the others. */
static void with_data(llcl_team_t *team, struct coll_memory *memory, uint64_t *word)
{
    struct coll_case asked = {0};
    struct coll_run runs[DEPTH];
    llcl_coll_t *plan = NULL;
    uint64_t started = 0, waited = 0, at, last = 5 * DEPTH;
    asked.team = team;
    asked.operation = ALLREDUCE;
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    asked.count = 33;
    for (at = 0; at < DEPTH; at++)
        coll_prepare(&runs[at], &asked, memory, memory);
    runs[0].params.flags = LLCL_COLL_REBIND;
    runs[0].params.depth = DEPTH;
    if (word)
        runs[0].params.on_complete = llcl_add_on(word);
    CHECK_OK(coll_init(ALLREDUCE, 0, &runs[0].params, &plan));
    while (waited < last) {
        uint64_t ahead = 1 + (started + llcl_team_rank(team)) % DEPTH;
        while (started < last && started < waited + ahead) {
            struct coll_run *run = &runs[started++ % DEPTH];
            run->round = started;
            coll_fill(run);
            CHECK_OK(llcl_coll_start_with(plan, run->params.send, run->params.receive));
        }
        if (word)
            AWAIT(word, waited + 1);
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        coll_verify(&runs[waited++ % DEPTH]);
    }
    /* Without other buffers the last ones stay. */
    runs[(last - 1) % DEPTH].round = 77;
    coll_fill(&runs[(last - 1) % DEPTH]);
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    coll_verify(&runs[(last - 1) % DEPTH]);
    CHECK_OK(llcl_coll_free(plan));
    for (at = 0; at < DEPTH; at++)
        coll_forget(&runs[at]);
    memory->used = 0;
}

static void refused(llcl_team_t *team)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *plan = NULL;
    uint64_t one = 1, sum = 0;
    params.team = team;
    params.depth = 65;
    CHECK_STATUS(llcl_barrier_init(&params, &plan), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "depth") != NULL);
    params.depth = llcl_team_rank(team) == 0 ? 2 : 3;
    if (llcl_team_size(team) > 1) {
        CHECK_STATUS(llcl_barrier_init(&params, &plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "depth") != NULL);
    }
    /* The blocking forms ignore it. */
    params.send = llcl_local_address(&one);
    params.receive = llcl_local_address(&sum);
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.count = 1;
    CHECK_OK(llcl_allreduce(&params));
    params.depth = 65;
    CHECK_OK(llcl_allreduce(&params));
    CHECK_EQUAL(sum, llcl_team_size(team));
}

static void run(llcl_context_t *context)
{
    struct job job = {0};
    struct coll_memory memory, registered;
    llcl_team_t *team = coll_world(context);
    uint64_t word = 0;
    job.context = context;
    share(context, ALLOCATED, 64, &job.flags);
    coll_memory_make(context, ALLOCATED, (size_t)1 << 16, &memory);
    coll_memory_make(context, REGISTERED, (size_t)1 << 16, &registered);
    refused(team);
    barriers(&job, team);
    with_data(team, &memory, NULL);
    with_data(team, &memory, &word);
    with_data(team, &registered, NULL);
    fence(context);
    region_drop(&memory.shared);
    region_drop(&registered.shared);
    share_end(context, &job.flags);
}

TEST_MAIN(run)
