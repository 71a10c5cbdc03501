/* Broken if this fails: the word of a completion, in memory that the ranks share, is not changed
 * while its rank computes: the rank only reads the word, and its progress thread is in a function
 * of the user, so that only the thread that delivers the last piece can change it. Or it is changed
 * before the data is there, or more than once.
 * ranks: 2 3
 * threads: 3
 * wire: no
 */
#include "coll_busy.h"

#define ROUNDS 8u

/* Rank 0: `word` is its completion's, and 0. Between start and word nothing is called. */
static void compute(struct coll_run *run, llcl_coll_t *keeper, struct stuck *stuck, uint64_t *words,
                    uint64_t round, uint32_t kind)
{
    uint64_t expected = kind == LLCL_COMPLETE_ADD ? round : 1;
    CHECK_OK(llcl_coll_start(keeper));
    word_set(&words[0], 2 * round - 1);
    busy_compute_until(&stuck->inside, round);
    if (kind == LLCL_COMPLETE_STORE)
        word_set(&words[1], 0);
    coll_start(run);
    word_set(&words[0], 2 * round);
    busy_compute_until(&words[1], expected);
    coll_expect(run);
    CHECK(memcmp(run->receive.bytes, run->receive.shadow, run->receive.size + 2 * COLL_GUARD) == 0);
    /* One half goes on with the word alone, as a program that starts its rounds by it. */
    if (round % 2 == 0)
        CHECK_OK(llcl_coll_wait(run->plan, TEST_PATIENCE_NS));
    CHECK_EQUAL(word_get(&words[1]), expected);
    word_set(&stuck->release, round);
    CHECK_OK(llcl_coll_wait(keeper, TEST_PATIENCE_NS));
}

static void one_plan(llcl_context_t *context, const struct coll_case *asked, struct coll_memory *memory,
                     struct shared *shared, uint32_t kind)
{
    struct coll_run run;
    struct stuck stuck = {0, 0};
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *keeper;
    uint64_t round, *go;
    uint32_t me = llcl_rank(context);
    memory->used = 0;
    coll_prepare(&run, asked, memory, memory);
    word_set(&shared->words[0], 0);
    word_set(&shared->words[1], 0);
    go = llcl_remote_pointer(context, 0, remote_at(shared, 0, 0), 8);
    CHECK(go != NULL);
    if (me == 0)
        run.params.on_complete = kind == LLCL_COMPLETE_ADD ? llcl_add_on(&shared->words[1])
                                                           : llcl_store_on(&shared->words[1]);
    CHECK_OK(coll_init(asked->operation, 0, &run.params, &run.plan));
    params.team = asked->team;
    if (me == 0)
        params.on_complete = llcl_callback(stay, &stuck);
    CHECK_OK(llcl_barrier_init(&params, &keeper));
    for (round = 1; round <= ROUNDS; round++) {
        if (me == 0) {
            compute(&run, keeper, &stuck, shared->words, round, kind);
        } else {
            AWAIT(go, 2 * round - 1);
            CHECK_OK(llcl_coll_start(keeper));
            CHECK_OK(llcl_coll_wait(keeper, TEST_PATIENCE_NS));
            AWAIT(go, 2 * round);
            coll_start(&run);
            coll_finish(&run);
        }
        fence(context);
    }
    coll_drop(&run);
    CHECK_OK(llcl_coll_free(keeper));
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {BARRIER, BROADCAST, ALLREDUCE, ALLTOALL};
    static const uint64_t counts[] = {1, 40, 20000};
    struct coll_case asked = {0};
    struct coll_memory memory;
    struct shared shared;
    size_t i, c;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 21, &memory);
    share(context, ALLOCATED, 64, &shared);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            asked.operation = operations[i];
            asked.count = counts[c];
            asked.root = asked.operation == BROADCAST ? llcl_size(context) - 1 : 0;
            one_plan(context, &asked, &memory, &shared, c % 2 ? LLCL_COMPLETE_STORE : LLCL_COMPLETE_ADD);
        }
    share_end(context, &shared);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
