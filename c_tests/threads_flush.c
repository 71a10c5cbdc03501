/* Broken if this fails: a flush of one thread returns before what that thread has posted has ended,
 * while other threads post and flush, through the queue, to owners and at once; or a blocking call
 * returns before its end.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 * timeout: 60
 */
#include "shared.h"

#define THREADS 6
#define ROUNDS 150
#define WINDOW 24
#define ROW 256 /* bytes of one thread of one rank in a peer's region */

struct worker {
    llcl_context_t *context;
    struct shared *targets; /* by kind */
    uint32_t number;
};

static void one_round(const struct worker *worker, struct shared *mine, struct tally *tally, uint64_t round)
{
    llcl_context_t *context = worker->context;
    uint64_t before = word_get(&tally->fired), at = (llcl_rank(context) * THREADS + worker->number) * ROW;
    uint32_t peer = (uint32_t)((round + worker->number) % llcl_size(context)), i;
    struct shared *target = &worker->targets[round % 2 ? ALLOCATED : REGISTERED];
    llcl_read_params_t read = {0};
    for (i = 0; i < WINDOW; i++) {
        llcl_write_params_t write = {0};
        mine->words[i] = round << 8 | i;
        write.peer = peer;
        write.flags = (i + round) % 4 == 0 ? LLCL_FLAG_DEFER : 0;
        write.source = llcl_region_local(mine->region, i * 8);
        write.destination = remote_at(target, peer, at + i * 8);
        write.size = 8;
        write.on_complete = count_in(tally);
        if (i % 2)
            CHECK_OK(llcl_write_async(context, &write));
        else
            POST(llcl_try_write_async(context, &write));
    }
    CHECK_OK(round % 3 ? llcl_flush(context, peer) : llcl_flush_all(context));
    CHECK_EQUAL(word_get(&tally->fired), before + WINDOW);
    CHECK_EQUAL(tally->failed, 0);
    /* Nobody else writes there. */
    read.peer = peer;
    read.source = remote_at(target, peer, at);
    read.destination = llcl_region_local(mine->region, ROW);
    read.size = WINDOW * 8;
    CHECK_OK(llcl_read(context, &read));
    CHECK(memcmp(mine->bytes, mine->bytes + ROW, WINDOW * 8) == 0);
}

static void *work(void *data)
{
    const struct worker *worker = data;
    struct tally tally = {0, 0, 0};
    struct shared mine;
    uint64_t round;
    test_rank = llcl_rank(worker->context);
    region_make(worker->context, worker->number % 2 ? ALLOCATED : REGISTERED, 2 * ROW, &mine);
    for (round = 1; round <= ROUNDS; round++)
        one_round(worker, &mine, &tally, round);
    region_drop(&mine);
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct worker workers[THREADS];
    struct shared targets[MEMORY_KINDS];
    pthread_t threads[THREADS];
    uint32_t i;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, (size_t)llcl_size(context) * THREADS * ROW, &targets[kind]);
    for (i = 0; i < THREADS; i++) {
        workers[i].context = context;
        workers[i].targets = targets;
        workers[i].number = i;
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    fence(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
}

TEST_MAIN(run)
