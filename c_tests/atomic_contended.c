/* Broken if this fails: fetch-adds of all ranks' threads on one word are not totally ordered: some
 * old value is fetched twice or never, whatever path each rank uses to the word.
 * ranks: 1 2 3 5
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define THREADS 3
#define EACH 400

struct worker {
    llcl_context_t *context;
    llcl_remote_t word;
    uint32_t flags;
    uint64_t got[EACH];
};

static void *work(void *data)
{
    struct worker *worker = data;
    int i;
    for (i = 0; i < EACH; i++) {
        if (i % 2) {
            llcl_fetch_add_params_t add = {0};
            add.flags = worker->flags;
            add.target = worker->word;
            add.operand = 1;
            add.result = &worker->got[i];
            CHECK_OK(llcl_fetch_add(worker->context, &add));
        } else {
            llcl_atomic_params_t atomic = {0};
            atomic.flags = worker->flags;
            atomic.target = worker->word;
            atomic.op = LLCL_OP_ADD;
            atomic.type = LLCL_TYPE_U64;
            atomic.operand = 1;
            atomic.result = &worker->got[i];
            CHECK_OK(llcl_atomic(worker->context, &atomic));
        }
    }
    return NULL;
}

static void history(llcl_context_t *context, int kind)
{
    uint32_t size = llcl_size(context), total = size * THREADS * EACH, i;
    struct worker *workers = calloc(THREADS, sizeof *workers);
    uint64_t *mine = malloc(THREADS * EACH * 8), *all = malloc(total * 8);
    unsigned char *seen = calloc(total, 1);
    pthread_t threads[THREADS];
    struct shared target;
    CHECK(workers && mine && all && seen);
    share(context, kind, 64, &target);
    for (i = 0; i < THREADS; i++) {
        workers[i].context = context;
        workers[i].word = remote_at(&target, 0, 8);
        workers[i].flags = i == 2 ? LLCL_FLAG_DEFER : 0;
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        memcpy(mine + i * EACH, workers[i].got, sizeof workers[i].got);
    }
    CHECK_OK(llcl_allgather_bytes(context, mine, THREADS * EACH * 8, all));
    for (i = 0; i < total; i++) {
        CHECK(all[i] < total);
        CHECK_EQUAL(seen[all[i]]++, 0);
    }
    if (llcl_rank(context) == 0)
        CHECK_EQUAL(word_get(&target.words[1]), total);
    share_end(context, &target);
    free(workers);
    free(mine);
    free(all);
    free(seen);
}

static void run(llcl_context_t *context)
{
    history(context, ALLOCATED);
    history(context, REGISTERED);
}

TEST_MAIN(run)
