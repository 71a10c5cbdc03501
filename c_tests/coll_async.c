/* Broken if this fails: llcl_X_async waits for another rank, has another result than its plan, does
 * not fire its completion once, or comes out of the order of the team's calls.
 * ranks: 1 2 3 5
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define CHAIN 200u
#define AGAIN 3u

/* What may be told "not now" is asked again. */
static void begin(int operation, int varied, const llcl_coll_params_t *params)
{
    llcl_status_t status;
    do
        status = coll_begin(operation, varied, params);
    while (status == LLCL_RETRY_BUSY && sched_yield() == 0);
    CHECK_OK(status);
}

/* Several different operations under way together, each some times, told in three ways. */
static void together(const struct coll_case *asked, struct coll_memory *memory)
{
    enum { FORMS = 2 * OPERATIONS };
    struct coll_run *runs = calloc(FORMS, sizeof *runs);
    struct tally tally = {0, 0, 0};
    uint64_t set[FORMS] = {0}, sum = 0, calls = 0, adds = 0, round;
    struct coll_case one = *asked;
    int at, forms = 0;
    CHECK(runs != NULL);
    for (one.operation = BARRIER; one.operation < OPERATIONS; one.operation++)
        for (one.varied = 0; one.varied <= coll_operations[one.operation].has_varied; one.varied++) {
            one.root = coll_operations[one.operation].rooted ? llcl_team_size(asked->team) - 1 : 0;
            coll_prepare(&runs[forms++], &one, memory, memory);
        }
    for (round = 0; round < AGAIN; round++) {
        for (at = 0; at < forms; at++) {
            llcl_coll_params_t *params = &runs[at].params;
            uint64_t kind = ((uint64_t)at + round) % 3;
            params->on_complete = kind == 0 ? count_in(&tally) : kind == 1 ? llcl_add_on(&sum) : llcl_store_on(&set[at]);
            calls += kind == 0;
            adds += kind == 1;
            set[at] = kind != 2;
            coll_fill(&runs[at]);
            begin(runs[at].asked.operation, runs[at].asked.varied, params);
        }
        AWAIT(&tally.fired, calls);
        AWAIT(&sum, adds);
        for (at = 0; at < forms; at++) {
            AWAIT(&set[at], 1);
            CHECK_EQUAL(word_get(&set[at]), 1);
            coll_verify(&runs[at]);
        }
        CHECK_EQUAL(word_get(&tally.fired), calls);
        CHECK_EQUAL(word_get(&tally.failed), 0);
        CHECK_EQUAL(word_get(&sum), adds);
    }
    for (at = 0; at < forms; at++)
        coll_forget(&runs[at]);
    memory->used = 0;
    free(runs);
}

/* Nobody waits: rank 0 tells the others that it has begun, and they begin only then; the calls are
 * of kinds that were not seen before. What comes behind in the team comes in order. */
static void nobody_waits(llcl_context_t *context, const struct coll_case *asked, struct coll_memory *memory,
                         struct shared *flags, uint64_t turn)
{
    uint32_t me = llcl_rank(context), rank;
    struct coll_case one = *asked;
    struct coll_run runs[2];
    llcl_coll_t *plan = NULL;
    uint64_t done = 0;
    one.operation = ALLREDUCE;
    one.count = 1000 + turn;
    coll_prepare(&runs[0], &one, memory, memory);
    one.operation = ALLTOALL;
    one.varied = 1;
    coll_prepare(&runs[1], &one, memory, memory);
    runs[0].params.on_complete = runs[1].params.on_complete = llcl_add_on(&done);
    coll_fill(&runs[0]);
    coll_fill(&runs[1]);
    if (me != 0)
        AWAIT(flags->words, turn);
    begin(ALLREDUCE, 0, &runs[0].params);
    begin(ALLTOALL, 1, &runs[1].params);
    for (rank = 1; me == 0 && rank < llcl_size(context); rank++) {
        llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
        CHECK_EQUAL(word_get(&done), 0);
        write.peer = rank;
        write.size = 8;
        write.destination = flags->remote[rank];
        write.value = turn;
        CHECK_OK(llcl_write_value(context, &write));
    }
    runs[0].params.on_complete = llcl_no_completion();
    CHECK_OK(coll_init(ALLREDUCE, 0, &runs[0].params, &plan));
    CHECK_OK(llcl_coll_free(plan));
    AWAIT(&done, 2);
    coll_verify(&runs[0]);
    coll_verify(&runs[1]);
    coll_forget(&runs[0]);
    coll_forget(&runs[1]);
    memory->used = 0;
}

/* ---- each call is made by the completion of the one before ---- */

struct chain {
    struct coll_run run;
    uint64_t calls, wrong, over;
};

static void next_link(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    CHECK_OK(status);
    coll_expect(&chain->run);
    chain->wrong += memcmp(chain->run.receive.bytes, chain->run.receive.shadow,
                           chain->run.receive.size + 2 * COLL_GUARD) != 0;
    if (++chain->calls == CHAIN) {
        word_set(&chain->over, 1);
        return;
    }
    coll_fill(&chain->run);
    CHECK_OK(coll_begin(chain->run.asked.operation, 0, &chain->run.params));
}

static void chained(const struct coll_case *asked, struct coll_memory *memory)
{
    struct chain *chain = calloc(1, sizeof *chain);
    CHECK(chain != NULL);
    coll_prepare(&chain->run, asked, memory, memory);
    chain->run.params.on_complete = llcl_callback(next_link, chain);
    coll_fill(&chain->run);
    begin(asked->operation, 0, &chain->run.params);
    AWAIT(&chain->over, 1);
    CHECK_EQUAL(chain->wrong, 0);
    coll_forget(&chain->run);
    memory->used = 0;
    free(chain);
}

/* ---- what is refused ---- */

static void refused(const struct coll_case *asked, struct coll_memory *memory)
{
    struct coll_case one = *asked;
    struct coll_run run;
    llcl_coll_params_t none = LLCL_COLL_PARAMS_INIT;
    uint64_t word = 0;
    int varied;
    for (one.operation = BARRIER; one.operation < OPERATIONS; one.operation++)
        for (varied = 0; varied <= coll_operations[one.operation].has_varied; varied++) {
            CHECK_STATUS(coll_begin(one.operation, varied, NULL), LLCL_ERR_INVALID);
            CHECK_STATUS(coll_begin(one.operation, varied, &none), LLCL_ERR_INVALID);
        }
    one.operation = ALLREDUCE;
    one.count = 5;
    coll_prepare(&run, &one, memory, memory);
    CHECK_STATUS(coll_begin(ALLREDUCE, 0, &run.params), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "on_complete") != NULL);
    run.params.on_complete = llcl_store_on(&word);
    run.params.depth = 65;
    CHECK_STATUS(coll_begin(ALLREDUCE, 0, &run.params), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "depth is 65") != NULL);
    run.params.depth = 0;
    run.params.flags = 1u << 20;
    CHECK_STATUS(coll_begin(ALLREDUCE, 0, &run.params), LLCL_ERR_INVALID);
    run.params.flags = 0;
    run.params.on_complete.kind = 77;
    CHECK_STATUS(coll_begin(ALLREDUCE, 0, &run.params), LLCL_ERR_INVALID);
    run.params.on_complete = llcl_store_on(&word);
    /* What only making the plan can show is told by the completion, at all ranks. */
    if (run.me == run.ranks - 1)
        run.params.type = 99;
    begin(ALLREDUCE, 0, &run.params);
    AWAIT(&word, 1);
    CHECK(word_get(&word) == (uint64_t)(int64_t)LLCL_ERR_INVALID);
    /* A difference, too. */
    word = 0;
    run.params.type = one.type;
    run.params.count -= run.me == 0;
    begin(ALLREDUCE, 0, &run.params);
    AWAIT(&word, 1);
    CHECK(run.ranks == 1 || word_get(&word) == (uint64_t)(int64_t)LLCL_ERR_INVALID);
    coll_forget(&run);
    memory->used = 0;
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory, registered;
    struct shared flags;
    llcl_team_t *part = NULL;
    llcl_stats_t before = {0}, after = {0};
    uint64_t turn;
    share(context, ALLOCATED, 64, &flags);
    coll_memory_make(context, ALLOCATED, (size_t)1 << 20, &memory);
    coll_memory_make(context, REGISTERED, (size_t)1 << 20, &registered);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    refused(&asked, &memory);
    for (turn = 1; turn <= 4; turn++) {
        nobody_waits(context, &asked, &memory, &flags, turn);
        asked.count = turn % 2 ? 7 : 1000;
        asked.seed = turn;
        together(&asked, turn % 4 < 2 ? &memory : &registered);
        asked.operation = turn % 2 ? ALLREDUCE : BARRIER;
        chained(&asked, &memory);
    }
    /* The plan is kept: a further call makes none. */
    before.struct_size = after.struct_size = sizeof before;
    CHECK_OK(llcl_stats_get(context, &before));
    chained(&asked, &memory);
    CHECK_OK(llcl_stats_get(context, &after));
    CHECK_EQUAL(after.coll_cache_misses, before.coll_cache_misses);
    CHECK_EQUAL(after.coll_cache_hits, before.coll_cache_hits + CHAIN);
    /* A team ends behind what is under way in it. */
    CHECK_OK(llcl_team_split(asked.team, llcl_rank(context) % 2, 0, &part));
    asked.team = part;
    for (turn = 0; turn < 3; turn++) {
        llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
        uint64_t word = 0;
        params.team = part;
        params.depth = 1 + (uint32_t)turn;
        params.on_complete = llcl_store_on(&word);
        begin(BARRIER, 0, &params);
        if (turn == 2)
            CHECK_OK(llcl_team_free(part));
        AWAIT(&word, 1);
        CHECK_EQUAL(word, 1);
    }
    fence(context);
    region_drop(&memory.shared);
    region_drop(&registered.shared);
    share_end(context, &flags);
}

TEST_MAIN(run)
