/* Broken if this fails: ranks that have waited at once in many rounds, so that deliverers no longer
 * check whether they wait, miss a signal or data when one of them computes, comes late, sleeps or
 * only tests; or a root that is rounds ahead of the others overwrites data that they have not read.
 * Prints its seed; LLCL_TEST_SEED repeats a run.
 * ranks: 2 3
 * threads: 2
 * timeout: 60
 */
#include "coll_busy.h"

#define PHASES 12u

/* Rank `other` starts and computes until all others are through. */
static void computing(struct busy *busy, struct coll_run *run, uint32_t other)
{
    int64_t end;
    if (run->me == other) {
        coll_start(run);
        busy_announce(busy, run->me, run->ranks);
        busy_compute(busy);
        /* Nobody need have run its last step, and somebody may be about to: this rank's progress
         * thread, or another rank. */
        for (end = now_ns() + TEST_PATIENCE_NS; llcl_coll_test(run->plan) == LLCL_RETRY_BUSY;)
            CHECK(now_ns() < end);
        coll_verify(run);
    } else {
        AWAIT(busy->words.words, ++busy->started);
        coll_start(run);
        coll_finish(run);
        busy_tell(busy, other, 1);
    }
}

/* Rank `other` behaves otherwise for some rounds; nobody else does. */
static void disturbed(struct coll_run *run, uint32_t other, uint64_t dice)
{
    unsigned round, rounds = 1 + (unsigned)(dice >> 8) % 20;
    for (round = 0; round < rounds; round++) {
        if (run->me == other && dice % 4 == 0)
            usleep(1000); /* the others wait for longer than they look without a pause */
        coll_start(run);
        if (run->me == other && dice % 4 == 1)
            busy_compute_for(20000);
        if (run->me == other && dice % 4 == 2)
            usleep(1000);
        while (run->me == other && dice % 4 == 3 && llcl_coll_test(run->plan) == LLCL_RETRY_BUSY)
            sched_yield();
        if (run->me == other && dice % 4 == 3)
            coll_verify(run);
        else
            coll_finish(run);
    }
}

static void one_plan(struct busy *busy, int operation, uint64_t count, uint32_t type, uint64_t *random)
{
    struct coll_case asked = {0};
    struct coll_run run;
    unsigned phase;
    asked.team = coll_world(busy->context);
    asked.operation = operation;
    asked.count = count;
    asked.type = type;
    asked.op = LLCL_OP_ADD;
    asked.seed = random_next(random);
    busy->memory.used = 0;
    CHECK_OK(coll_make(&run, &asked, &busy->memory, &busy->memory));
    for (phase = 0; phase < PHASES; phase++) {
        uint64_t dice = random_next(random);
        uint32_t other = (uint32_t)(dice >> 40) % run.ranks;
        coll_rounds(&run, 100 + (unsigned)(dice >> 20) % 200);
        if (phase % 3 == 0)
            computing(busy, &run, other);
        else
            disturbed(&run, other, dice);
    }
    coll_drop(&run);
}

static void run(llcl_context_t *context)
{
    /* Around the end of a cell, and of what a root of three may send far ahead. */
    static const uint64_t sizes[] = {1, 8, 60, 61, 256, 257, 2000};
    const char *text = getenv("LLCL_TEST_SEED");
    uint64_t random = text ? strtoull(text, NULL, 10) : 20261121;
    struct busy busy;
    size_t i;
    if (llcl_rank(context) == 0)
        printf("seed %llu\n", (unsigned long long)random);
    busy_begin(context, &busy);
    one_plan(&busy, BARRIER, 0, LLCL_TYPE_U8, &random);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        one_plan(&busy, BROADCAST, sizes[i], LLCL_TYPE_U8, &random);
    one_plan(&busy, ALLREDUCE, 1, LLCL_TYPE_U64, &random);
    one_plan(&busy, ALLREDUCE, 100, LLCL_TYPE_U64, &random);
    busy_end(&busy);
}

TEST_MAIN(run)
