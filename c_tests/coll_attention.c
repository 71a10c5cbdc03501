/* Broken if this fails: a rank that has waited in the library in one round, and computes in the
 * next, counts as one that still polls its queue, so that no thread runs its steps while all ranks
 * compute; or a program that waits at once only in every second round counts as one that always
 * does. Rank 1 computes, without any call, until rank 0 has its data.
 * ranks: 2
 * modes: auto direct
 */
#include "coll.h"

#define SEGMENT 64u
#define TRIES 400u
#define ROUNDS 400u
#define SPIN_NS 300000

struct pair {
    llcl_context_t *context;
    uint32_t me;
    struct shared memory; /* words: 0, 1: how often each rank has said something; from 8 on the buffers */
    uint64_t *words;      /* rank 0's */
    uint64_t said;
    uint64_t count; /* bytes of a block */
    uint64_t round;
    llcl_coll_t *plan;
};

#define SEND 8u
#define RECEIVE 64u

static void compute_for(int64_t ns)
{
    int64_t end = now_ns() + ns;
    while (now_ns() < end)
        ;
}

/* Says that this rank is here, and waits for the other one, without the library and awake. */
static void meet(struct pair *pair)
{
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    word_set(&pair->words[pair->me], ++pair->said);
    while (word_get(&pair->words[1 - pair->me]) < pair->said)
        CHECK(now_ns() < end);
}

static void make(struct pair *pair, uint64_t count)
{
    llcl_coll_params_t params = {0};
    llcl_coll_info_t info = {0};
    params.team = coll_world(pair->context);
    params.send = llcl_region_local(pair->memory.region, 8 * SEND);
    params.receive = llcl_region_local(pair->memory.region, 8 * RECEIVE);
    params.type = LLCL_TYPE_U8;
    params.count = count;
    params.algorithm = "ring";
    params.engine = LLCL_ENGINE_OFFLOAD;
    CHECK_OK(llcl_allgather_init(&params, &pair->plan));
    info.struct_size = sizeof info;
    CHECK_OK(llcl_coll_query(pair->plan, &info));
    CHECK_EQUAL(info.queues, count > SEGMENT ? 2 : 1);
    pair->count = count;
}

static void start(struct pair *pair)
{
    uint64_t i;
    pair->round++;
    for (i = 0; i < pair->count / 8; i++)
        pair->memory.words[SEND + i] = pair->round;
    CHECK_OK(llcl_coll_start(pair->plan));
}

static void finish(struct pair *pair)
{
    CHECK_OK(llcl_coll_wait(pair->plan, TEST_PATIENCE_NS));
}

/* Whether rank 1's block of this round is there, in both lanes; looked at for so long. */
static int comes_within(struct pair *pair, int64_t ns)
{
    const uint64_t *block = &pair->memory.words[RECEIVE + pair->count / 8];
    int64_t end = now_ns() + ns;
    while (word_get(&block[0]) != pair->round || word_get(&block[pair->count / 8 - 1]) != pair->round)
        if (now_ns() > end)
            return 0;
    return 1;
}

/* A round in which rank 1 starts first and computes; whether rank 0, which starts and looks, has
 * its data within so long. */
static int past_computing(struct pair *pair, int64_t ns)
{
    int came = 1;
    if (pair->me == 1)
        start(pair);
    meet(pair);
    if (pair->me == 0) {
        start(pair);
        came = comes_within(pair, ns);
    }
    meet(pair);
    if (pair->me == 1)
        compute_for(5000); /* whoever has the data early does not wait at once either */
    finish(pair);
    return came;
}

/* Rank 1 waits, and the round ends at any time around that: also while it looks. */
static void after_a_wait(struct pair *pair, uint64_t count)
{
    uint32_t i;
    make(pair, count);
    for (i = 0; i < TRIES; i++) {
        meet(pair);
        if (pair->me == 0)
            compute_for(4000 + i % 80 * 100);
        start(pair);
        if (pair->me == 1)
            compute_for(5000);
        finish(pair);
        CHECK(past_computing(pair, TEST_PATIENCE_NS / 4));
    }
    CHECK_OK(llcl_coll_free(pair->plan));
}

/* Both wait at once in every second round. */
static void by_turns(struct pair *pair)
{
    uint32_t i, late = 0;
    make(pair, 8);
    for (i = 0; i < ROUNDS / 2; i++) {
        meet(pair);
        start(pair);
        finish(pair);
        late += !past_computing(pair, SPIN_NS);
    }
    if (late)
        printf("%u of %u rounds were left alone\n", late, ROUNDS / 2);
    CHECK(late < ROUNDS / 8);
    CHECK_OK(llcl_coll_free(pair->plan));
}

static void run(llcl_context_t *context)
{
    struct pair pair = {0};
    pair.context = context;
    pair.me = llcl_rank(context);
    share(context, ALLOCATED, 2048, &pair.memory);
    pair.words = pair.me == 0 ? pair.memory.words
                              : llcl_remote_pointer(context, 0, remote_at(&pair.memory, 0, 0), 2048);
    CHECK(pair.words != NULL);
    after_a_wait(&pair, 8);
    after_a_wait(&pair, 2 * SEGMENT);
    by_turns(&pair);
    share_end(context, &pair.memory);
}

int main(void)
{
    CHECK(setenv("LLCL_COLL_SEGMENT", "64", 1) == 0);
    return test_main(run, NULL);
}
