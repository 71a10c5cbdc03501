/* Broken if this fails: the word of a completion changes before the data is where its user looks,
 * because another rank has changed it, which cannot copy the data there: the output is registered
 * memory, or is named anew with each start. Or the owner's progress thread does not change it.
 * ranks: 2 3
 * modes: auto
 * threads: 3
 * wire: no (all ranks map the words of rank 0)
 */
#include "coll_busy.h"

#define ROUNDS 6u
#define LOOKS 1000

static int data_is_there(struct coll_run *run)
{
    return memcmp(run->receive.bytes, run->receive.shadow, run->receive.size + 2 * COLL_GUARD) == 0;
}

/* Rank 0, which calls nothing between the start and the word. `words`: how far it has come, its
 * completion's, and how many of the others are through. */
static void compute(struct coll_run *run, llcl_coll_t *keeper, struct stuck *stuck, uint64_t *words, uint64_t round)
{
    int look;
    CHECK_OK(llcl_coll_start(keeper));
    word_set(&words[0], 2 * round - 1);
    busy_compute_until(&stuck->inside, round);
    coll_start(run);
    word_set(&words[0], 2 * round);
    busy_compute_until(&words[2], round * (run->ranks - 1));
    coll_expect(run);
    for (look = 0; look < LOOKS; look++)
        CHECK(word_get(&words[1]) < round || data_is_there(run));
    word_set(&stuck->release, round);
    busy_compute_until(&words[1], round);
    CHECK(data_is_there(run));
    CHECK_OK(llcl_coll_wait(run->plan, TEST_PATIENCE_NS));
    CHECK_EQUAL(word_get(&words[1]), round);
    CHECK_OK(llcl_coll_wait(keeper, TEST_PATIENCE_NS));
}

static void one_plan(struct busy *busy, const struct coll_case *asked, struct coll_memory *memory, uint32_t flags)
{
    struct coll_run run;
    struct stuck stuck = {0, 0};
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *keeper;
    uint64_t round, *words = busy->words.words, *go;
    uint32_t me = llcl_rank(busy->context);
    memory->used = 0;
    memset(words, 0, 3 * sizeof *words);
    fence(busy->context);
    coll_prepare(&run, asked, memory, memory);
    run.params.flags |= flags;
    go = llcl_remote_pointer(busy->context, 0, remote_at(&busy->words, 0, 0), 8);
    CHECK(go != NULL);
    if (me == 0)
        run.params.on_complete = llcl_add_on(&words[1]);
    CHECK_OK(coll_init(asked->operation, 0, &run.params, &run.plan));
    params.team = asked->team;
    if (me == 0)
        params.on_complete = llcl_callback(stay, &stuck);
    CHECK_OK(llcl_barrier_init(&params, &keeper));
    for (round = 1; round <= ROUNDS; round++) {
        if (me == 0) {
            compute(&run, keeper, &stuck, words, round);
        } else {
            AWAIT(go, 2 * round - 1);
            CHECK_OK(llcl_coll_start(keeper));
            CHECK_OK(llcl_coll_wait(keeper, TEST_PATIENCE_NS));
            AWAIT(go, 2 * round);
            coll_start(&run);
            coll_finish(&run);
            busy_tell(busy, 0, 2);
        }
        fence(busy->context);
    }
    coll_drop(&run);
    CHECK_OK(llcl_coll_free(keeper));
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {BROADCAST, ALLREDUCE, ALLTOALL};
    struct coll_case asked = {0};
    struct coll_memory registered;
    struct busy busy;
    size_t i;
    busy_begin(context, &busy);
    coll_memory_make(context, REGISTERED, (size_t)1 << 18, &registered);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    asked.count = 40;
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        asked.operation = operations[i];
        asked.root = asked.operation == BROADCAST ? llcl_size(context) - 1 : 0;
        one_plan(&busy, &asked, &registered, 0);
        one_plan(&busy, &asked, &busy.memory, LLCL_COLL_REBIND);
    }
    busy_end(&busy);
    region_drop(&registered.shared);
}

TEST_MAIN(run)
