/* Broken if this fails: eight threads of each rank that post everything to everybody at once lose,
 * double or mix up operations, or lock each other up.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 * timeout: 60
 */
#include "wild.h"

#define THREADS 8
#define ROUNDS 400
#define CELL 256 /* bytes of one thread of one rank in a peer's region */

struct worker {
    llcl_context_t *context;
    struct shared *targets; /* by kind */
    uint32_t number;
    struct tally tally;
    uint64_t posted;
    uint64_t adds;
};

/* The thread's own cell in the peer's region: a counter, a value, a row of bytes. */
static uint64_t cell_of(const struct worker *worker)
{
    return (llcl_rank(worker->context) * THREADS + worker->number) * CELL;
}

static void post(struct worker *worker, struct wild *wild, int operation)
{
    wild->operation = operation;
    wild->tier = TIER_TRY;
    POST(wild_post(worker->context, wild));
    worker->posted++;
}

static void one_round(struct worker *worker, struct shared *mine, uint64_t *state)
{
    llcl_context_t *context = worker->context;
    struct shared *target = &worker->targets[random_next(state) % MEMORY_KINDS];
    struct wild wild = {0};
    uint64_t cell = cell_of(worker), old;
    wild.peer = (uint32_t)(random_next(state) % llcl_size(context));
    wild.flags = random_next(state) % 4 == 0 ? LLCL_FLAG_DEFER : 0;
    wild.local = llcl_region_local(mine->region, 0);
    wild.on_complete = count_in(&worker->tally);
    /* Nobody else writes to this cell: what is read back is what was written. */
    mine->words[0] = random_next(state);
    old = mine->words[0];
    wild.remote = remote_at(target, wild.peer, cell + 64);
    wild.memory = &mine->words[0];
    switch (random_next(state) % 3) {
    case 0: post(worker, &wild, WILD_WRITE); break;
    case 1: post(worker, &wild, WILD_VALUE); break;
    default: post(worker, &wild, WILD_SMALL); break;
    }
    AWAIT(&worker->tally.fired, worker->posted);
    mine->words[0] = 0;
    post(worker, &wild, WILD_READ);
    AWAIT(&worker->tally.fired, worker->posted);
    CHECK_EQUAL(mine->words[0], old);
    /* The shared counter of all: fetch-adds in flight at the same time. */
    wild.remote = remote_at(target, wild.peer, 64 * 1024 - 64);
    wild.memory = &mine->words[8];
    post(worker, &wild, WILD_FETCH_ADD);
    wild.memory = &mine->words[9];
    post(worker, &wild, WILD_ATOMIC);
    worker->adds += 2;
    AWAIT(&worker->tally.fired, worker->posted);
}

static void *work(void *data)
{
    struct worker *worker = data;
    uint64_t state = 1 + worker->number + 100 * (uint64_t)llcl_rank(worker->context);
    struct shared mine;
    int round;
    test_rank = llcl_rank(worker->context);
    region_make(worker->context, worker->number % MEMORY_KINDS, 256, &mine);
    for (round = 0; round < ROUNDS; round++)
        one_round(worker, &mine, &state);
    CHECK_EQUAL(worker->tally.failed, 0);
    CHECK_EQUAL(worker->tally.fired, worker->posted);
    region_drop(&mine);
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct worker *workers = calloc(THREADS, sizeof *workers);
    struct shared targets[MEMORY_KINDS];
    pthread_t threads[THREADS];
    uint64_t adds = 0, seen = 0, all[64], i;
    int kind;
    CHECK(workers != NULL);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, 64 * 1024, &targets[kind]);
    for (i = 0; i < THREADS; i++) {
        workers[i].context = context;
        workers[i].targets = targets;
        workers[i].number = (uint32_t)i;
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        adds += workers[i].adds;
    }
    CHECK_OK(llcl_allgather_bytes(context, &adds, sizeof adds, all));
    for (adds = 0, i = 0; i < llcl_size(context); i++)
        adds += all[i];
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        seen += word_get(&targets[kind].words[8192 - 8]);
    CHECK_OK(llcl_allgather_bytes(context, &seen, sizeof seen, all));
    for (seen = 0, i = 0; i < llcl_size(context); i++)
        seen += all[i];
    CHECK_EQUAL(seen, adds);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
    free(workers);
}

TEST_MAIN(run)
