/* Broken if this fails: a rank's steps are not run by the thread that delivers their signals: if a
 * process has started its round and was then stopped, so that no thread of its own can run, the
 * others do not get their results, or it does not get its own when it goes on.
 * ranks: 3
 * modes: auto direct
 */
#include "coll_busy.h"
#include "stopped.h"

static void one_round(struct busy *busy, struct coll_run *run, uint32_t stopped)
{
    uint32_t first = (stopped + 1) % run->ranks, second = (stopped + 2) % run->ranks;
    if (run->me == stopped) {
        coll_start(run);
        /* The others are told by the one that stops this process. */
        busy->through += run->ranks - 1;
        busy_tell(busy, first, 0);
        busy_compute(busy);
        coll_finish(run); /* a thread of another rank may still be in this rank's last step */
    } else if (run->me == first) {
        pid_t pid;
        AWAIT(busy->words.words, ++busy->started);
        sleep_ms(3); /* its progress thread goes to sleep and holds nothing */
        pid = peer_stop(busy->context, stopped);
        busy_tell(busy, second, 0);
        coll_start(run);
        coll_finish(run);
        AWAIT(&busy->words.words[2], ++busy->second_through);
        CHECK(process_stands(pid));
        CHECK(kill(pid, SIGCONT) == 0);
        busy_tell(busy, stopped, 1);
        busy_tell(busy, stopped, 1);
    } else {
        AWAIT(busy->words.words, ++busy->started);
        coll_start(run);
        coll_finish(run);
        busy_tell(busy, first, 2);
    }
    fence(busy->context);
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {BARRIER, BROADCAST, ALLREDUCE};
    struct busy busy;
    uint32_t stopped, ranks = llcl_size(context);
    size_t i, tried;
    busy_begin(context, &busy);
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const struct coll_operation *operation = &coll_operations[operations[i]];
        for (tried = 0; operation->algorithms[tried]; tried++) {
            struct coll_case asked = {0};
            struct coll_run run;
            llcl_coll_info_t info = {0};
            asked.team = coll_world(context);
            asked.operation = operations[i];
            asked.algorithm = operation->algorithms[tried];
            asked.count = 3000;
            asked.type = LLCL_TYPE_U8;
            asked.op = LLCL_OP_ADD;
            asked.engine = LLCL_ENGINE_OFFLOAD;
            asked.seed = 10 * i + tried;
            busy.memory.used = 0;
            if (coll_make(&run, &asked, &busy.memory, &busy.memory) == LLCL_ERR_UNSUPPORTED) {
                coll_forget(&run);
                continue;
            }
            CHECK(run.plan != NULL);
            info.struct_size = sizeof info;
            CHECK_OK(llcl_coll_query(run.plan, &info));
            CHECK_EQUAL(info.any_rank, 1);
            for (stopped = 0; stopped < ranks; stopped++)
                one_round(&busy, &run, stopped);
            coll_drop(&run);
        }
    }
    busy_end(&busy);
}

TEST_MAIN(run)
