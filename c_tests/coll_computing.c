/* Broken if this fails: a rank that has started its round and then computes, without any call,
 * holds up the others or finds its own round still open when it looks. The order of events tells:
 * the computing rank goes on until the others say that they have their results.
 * ranks: 3
 * engines: offload thread
 * threads: 3
 */
#include "coll_busy.h"

static void one_round(struct busy *busy, struct coll_run *run, uint32_t computing, uint64_t *ended,
                      uint64_t rounds)
{
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    llcl_status_t status;
    if (run->me == computing) {
        coll_start(run);
        busy_announce(busy, run->me, run->ranks);
        busy_compute(busy);
        if (ended)
            busy_compute_until(ended, rounds);
        else
            busy_compute_for(1000000);
        /* Usually the first look finds the end; a thread that runs the last step, or that has
         * changed the word, may have lost its core before it says so. */
        while ((status = llcl_coll_test(run->plan)) == LLCL_RETRY_BUSY)
            CHECK(now_ns() < end);
        CHECK_OK(status);
        coll_verify(run);
    } else {
        AWAIT(busy->words.words, ++busy->started);
        coll_start(run);
        coll_finish(run);
        busy_tell(busy, computing, 1);
    }
    fence(busy->context);
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {BARRIER, BROADCAST, ALLREDUCE, ALLGATHER};
    struct busy busy;
    uint32_t computing, ranks = llcl_size(context);
    size_t i, tried;
    busy_begin(context, &busy);
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const struct coll_operation *operation = &coll_operations[operations[i]];
        for (tried = 0; operation->algorithms[tried]; tried++) {
            struct coll_case asked = {0};
            struct coll_run run;
            uint64_t ended = 0, rounds = 0;
            asked.team = coll_world(context);
            asked.operation = operations[i];
            asked.algorithm = operation->algorithms[tried];
            asked.count = tried % 2 ? 20000 : 64;
            asked.type = LLCL_TYPE_U8;
            asked.op = LLCL_OP_ADD;
            asked.seed = 10 * i + tried;
            busy.memory.used = 0;
            coll_prepare(&run, &asked, &busy.memory, &busy.memory);
            if (tried % 2)
                run.params.on_complete = llcl_add_on(&ended);
            if (coll_init(asked.operation, 0, &run.params, &run.plan) == LLCL_ERR_UNSUPPORTED) {
                coll_forget(&run);
                continue;
            }
            CHECK(run.plan != NULL);
            for (computing = 0; computing < 2 * ranks; computing++)
                one_round(&busy, &run, computing % ranks, tried % 2 ? &ended : NULL, ++rounds);
            coll_drop(&run);
        }
    }
    busy_end(&busy);
}

TEST_MAIN(run)
