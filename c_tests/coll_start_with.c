/* Broken if this fails: a round of a plan whose start names other buffers (elsewhere, mapped at
 * some ranks and not at others, in a region that is new) has a wrong result or touches the buffers
 * of another round; a plan that was not made for it takes other buffers; or a start that is refused
 * has begun the round.
 * ranks: 1 2 3
 * modes: auto
 * engines: offload thread
 * threads: 2
 */
#include "coll.h"

#define PLACES 3
#define ROUNDS 12u

struct places {
    struct coll_memory memory[PLACES];
    struct coll_run run[PLACES];
};

/* Where a rank has its buffers in a round; every fourth time they are where they were. */
static int place_of(uint32_t round, uint32_t rank)
{
    return (int)((round - round % 4 / 3) * 5 / 2 + rank) % PLACES;
}

static void start(struct places *places, llcl_coll_t *plan, uint32_t round, int place, int before)
{
    struct coll_run *run = &places->run[place];
    run->round = round;
    coll_fill(run);
    if (place == before)
        CHECK_OK(llcl_coll_start(plan));
    else
        CHECK_OK(llcl_coll_start_with(plan, run->params.send, run->params.receive));
}

/* Rounds of one plan. `word`: a completion stores there, or NULL. */
static void rounds(struct places *places, const struct coll_case *asked, uint64_t *word)
{
    llcl_coll_t *plan = NULL;
    uint32_t round, rank = llcl_team_rank(asked->team);
    int i, place = 0, before = 0;
    for (i = 0; i < PLACES; i++) {
        coll_prepare(&places->run[i], asked, &places->memory[i], &places->memory[i]);
        places->run[i].params.flags |= LLCL_COLL_REBIND;
    }
    if (word)
        places->run[0].params.on_complete = llcl_add_on(word);
    CHECK_OK(coll_init(asked->operation, asked->varied, &places->run[0].params, &plan));
    for (round = 1; round <= ROUNDS; round++, before = place) {
        place = place_of(round, rank);
        start(places, plan, round, place, before);
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        coll_verify(&places->run[place]);
    }
    CHECK_OK(llcl_coll_free(plan));
    for (i = 0; i < PLACES; i++) {
        coll_forget(&places->run[i]);
        places->memory[i].used = 0;
    }
}

/* A start with other buffers that is refused, because the round before was not waited for, changes
 * nothing of that round. The last rank begins it when the others have been refused. */
static void refused_under_way(llcl_context_t *context, struct places *places, const struct coll_case *asked)
{
    struct coll_run *run = &places->run[0], *other = &places->run[2];
    llcl_coll_t *plan = NULL;
    int last = llcl_team_rank(asked->team) + 1 == llcl_team_size(asked->team);
    coll_prepare(run, asked, &places->memory[0], &places->memory[0]);
    coll_prepare(other, asked, &places->memory[2], &places->memory[2]);
    run->params.flags |= LLCL_COLL_REBIND;
    CHECK_OK(coll_init(ALLREDUCE, 0, &run->params, &plan));
    coll_fill(run);
    coll_fill(other);
    if (!last)
        CHECK_OK(llcl_coll_start(plan));
    if (!last)
        CHECK_STATUS(llcl_coll_start_with(plan, other->params.send, other->params.receive), LLCL_ERR_STATE);
    fence(context);
    if (last)
        CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    coll_verify(run);
    coll_compare(other, &other->receive, "output");
    CHECK_OK(llcl_coll_free(plan));
    coll_forget(run);
    coll_forget(other);
    places->memory[0].used = places->memory[2].used = 0;
}

/* What is refused leaves the plan as it was. */
static void refused(struct places *places, const struct coll_case *asked)
{
    struct coll_run *run = &places->run[0];
    llcl_coll_t *plan = NULL, *fixed = NULL;
    llcl_local_t none;
    coll_prepare(run, asked, &places->memory[0], &places->memory[0]);
    CHECK_OK(coll_init(ALLREDUCE, 0, &run->params, &fixed));
    CHECK_STATUS(llcl_coll_start_with(fixed, run->params.send, run->params.receive), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "LLCL_COLL_REBIND") != NULL);
    CHECK_OK(llcl_coll_free(fixed));
    run->params.flags |= LLCL_COLL_REBIND;
    CHECK_OK(coll_init(ALLREDUCE, 0, &run->params, &plan));
    none = run->params.send;
    none.key = ~none.key;
    CHECK_STATUS(llcl_coll_start_with(NULL, run->params.send, run->params.receive), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_coll_start_with(plan, none, run->params.receive), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_coll_start_with(plan, run->params.send, none), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_coll_start_with(plan, run->params.send, run->params.send), LLCL_ERR_INVALID);
    none = run->params.receive;
    none.offset = UINT64_C(1) << 40;
    CHECK_STATUS(llcl_coll_start_with(plan, run->params.send, none), LLCL_ERR_RANGE);
    coll_fill(run);
    CHECK_OK(llcl_coll_start(plan));
    CHECK_STATUS(llcl_coll_start_with(plan, run->params.send, run->params.receive), LLCL_ERR_STATE);
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    coll_verify(run);
    CHECK_OK(llcl_coll_free(plan));
    coll_forget(run);
    places->memory[0].used = 0;
    if (llcl_team_size(asked->team) > 1) { /* a difference is told */
        if (run->me == 1)
            run->params.flags = 0;
        CHECK_STATUS(coll_init(ALLREDUCE, 0, &run->params, &plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "flags") != NULL);
    }
}

static void run(llcl_context_t *context)
{
    struct places places;
    struct coll_case asked = {0};
    uint64_t word = 0;
    int i, size;
    for (i = 0; i < PLACES; i++)
        coll_memory_make(context, i == 1 ? REGISTERED : ALLOCATED, (size_t)1 << 20, &places.memory[i]);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    for (asked.operation = BARRIER; asked.operation < OPERATIONS; asked.operation++)
        for (size = 0; size < 4; size++) {
            asked.count = size / 2 ? 3000 : 5;
            asked.varied = size % 2 && coll_operations[asked.operation].has_varied;
            asked.seed++;
            rounds(&places, &asked, size % 2 ? &word : NULL);
        }
    asked.operation = ALLREDUCE;
    asked.varied = 0;
    for (size = 0; size < 2; size++) {
        asked.count = size ? 30000 : 7;
        refused_under_way(context, &places, &asked);
    }
    asked.count = 7;
    refused(&places, &asked);
    fence(context);
    for (i = 0; i < PLACES; i++)
        region_drop(&places.memory[i].shared);
}

TEST_MAIN(run)
