/* Broken if this fails: the completion of a round does not fire, fires twice, fires before the
 * round has ended, or a callback cannot look at its plan and start the next round.
 * ranks: 1 2 3 5
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define ROUNDS 60u
#define CHAIN 300u

static void one_kind(llcl_context_t *context, const struct coll_case *asked, struct coll_memory *memory,
                     uint32_t kind)
{
    struct coll_run run;
    struct tally tally = {0, 0, 0};
    uint64_t word = 0, round;
    coll_prepare(&run, asked, memory, memory);
    run.params.on_complete = kind == LLCL_COMPLETE_CALL    ? count_in(&tally)
                             : kind == LLCL_COMPLETE_STORE ? llcl_store_on(&word)
                             : kind == LLCL_COMPLETE_ADD   ? llcl_add_on(&word)
                                                           : llcl_no_completion();
    CHECK_OK(coll_init(asked->operation, 0, &run.params, &run.plan));
    for (round = 1; round <= ROUNDS; round++) {
        if (kind == LLCL_COMPLETE_STORE)
            word_set(&word, 0);
        coll_start(&run);
        /* In one half of the rounds nobody calls the library until the completion has come. */
        if (round % 2 == 0)
            CHECK_OK(llcl_coll_wait(run.plan, TEST_PATIENCE_NS));
        if (kind == LLCL_COMPLETE_CALL)
            AWAIT(&tally.fired, round);
        else if (kind == LLCL_COMPLETE_STORE)
            AWAIT(&word, 1);
        else if (kind == LLCL_COMPLETE_ADD && round % 4 == 1)
            CHECK_OK(llcl_wait_word(context, &word, round, TEST_PATIENCE_NS));
        else if (kind == LLCL_COMPLETE_ADD)
            AWAIT(&word, round);
        /* The first look finds the round over; a thread that has changed a word may be about to say
         * so. */
        if (round % 2 != 0 && kind == LLCL_COMPLETE_CALL)
            CHECK_OK(llcl_coll_test(run.plan));
        else if (round % 2 != 0 && kind != LLCL_COMPLETE_NONE)
            POST(llcl_coll_test(run.plan));
        else if (round % 2 != 0)
            CHECK_OK(llcl_coll_wait(run.plan, TEST_PATIENCE_NS));
        coll_verify(&run);
    }
    fence(context);
    sleep_ms(2);
    CHECK_EQUAL(word_get(&tally.fired), kind == LLCL_COMPLETE_CALL ? ROUNDS : 0);
    CHECK_EQUAL(word_get(&tally.failed), 0);
    CHECK_EQUAL(word_get(&word), kind == LLCL_COMPLETE_ADD ? ROUNDS : kind == LLCL_COMPLETE_STORE);
    coll_drop(&run);
    memory->used = 0;
}

/* ---- each round is started by the callback of the one before ---- */

struct chain {
    struct coll_run run;
    uint64_t rounds, wrong, over;
};

static void next_link(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    CHECK_OK(status);
    CHECK_OK(llcl_coll_test(chain->run.plan));
    /* Not coll_verify: a callback compares what it needs to, and does not end the test half way. */
    coll_expect(&chain->run);
    chain->wrong += memcmp(chain->run.receive.bytes, chain->run.receive.shadow,
                           chain->run.receive.size + 2 * COLL_GUARD) != 0;
    if (++chain->rounds == CHAIN) {
        word_set(&chain->over, 1);
        return;
    }
    coll_fill(&chain->run);
    CHECK_OK(llcl_coll_start(chain->run.plan));
}

static void chained(const struct coll_case *asked, struct coll_memory *memory)
{
    struct chain *chain = calloc(1, sizeof *chain);
    CHECK(chain != NULL);
    coll_prepare(&chain->run, asked, memory, memory);
    chain->run.params.on_complete = llcl_callback(next_link, chain);
    CHECK_OK(coll_init(asked->operation, 0, &chain->run.params, &chain->run.plan));
    coll_start(&chain->run);
    AWAIT(&chain->over, 1);
    CHECK_EQUAL(chain->rounds, CHAIN);
    CHECK_EQUAL(chain->wrong, 0);
    coll_drop(&chain->run);
    memory->used = 0;
    free(chain);
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {BARRIER, BROADCAST, ALLREDUCE, ALLTOALL};
    struct coll_case asked = {0};
    struct coll_memory memory;
    size_t i;
    uint32_t kind;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 16, &memory);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        asked.operation = operations[i];
        asked.count = 1 + 40 * i;
        asked.root = asked.operation == BROADCAST ? llcl_size(context) - 1 : 0;
        for (kind = LLCL_COMPLETE_NONE; kind <= LLCL_COMPLETE_ADD; kind++)
            one_kind(context, &asked, &memory, kind);
        chained(&asked, &memory);
    }
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
