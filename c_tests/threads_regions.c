/* Broken if this fails: regions that come and go while other threads and ranks use others of the
 * same tables are mixed up, or an access to one that goes away does anything but work or say
 * LLCL_ERR_KEY.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define THREADS 4
#define ROUNDS 150

struct worker {
    llcl_context_t *context;
    struct shared *board; /* each rank's current address lies in the others' boards */
    uint32_t number;
};

/* Makes regions, publishes their addresses, and takes them away again. */
static void *owner(void *data)
{
    struct worker *worker = data;
    llcl_context_t *context = worker->context;
    uint32_t size = llcl_size(context), me = llcl_rank(context), round, peer;
    for (round = 0; round < ROUNDS; round++) {
        struct shared mine;
        llcl_remote_t address;
        region_make(context, (int)(worker->number + round) % MEMORY_KINDS, 4096 + round, &mine);
        address = llcl_region_remote(mine.region, 0);
        for (peer = 0; peer < size; peer++) {
            llcl_write_value_params_t value = {0};
            value.peer = peer;
            value.destination = remote_at(worker->board, peer, 8 * (me * THREADS + worker->number));
            value.value = address.key;
            value.size = 8;
            CHECK_OK(llcl_write_value(context, &value));
        }
        if (round % 8 == 0)
            sleep_ms(1);
        region_drop(&mine);
    }
    return NULL;
}

/* Uses whatever address stands on the board: it may be gone by now. */
static void *user(void *data)
{
    struct worker *worker = data;
    llcl_context_t *context = worker->context;
    uint32_t size = llcl_size(context), round;
    uint64_t state = 77 + worker->number;
    for (round = 0; round < ROUNDS * 20; round++) {
        llcl_fetch_add_params_t add = {0};
        llcl_status_t status;
        uint64_t slot = random_next(&state) % (size * THREADS);
        add.peer = (uint32_t)(slot / THREADS);
        add.target.key = word_get(&worker->board->words[slot]);
        add.target.offset = 8;
        add.operand = 1;
        status = llcl_fetch_add(context, &add);
        CHECK(status == LLCL_OK || status == LLCL_ERR_KEY);
    }
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct worker workers[2 * THREADS];
    pthread_t threads[2 * THREADS];
    struct shared board;
    uint32_t i;
    share(context, ALLOCATED, 4096, &board);
    for (i = 0; i < 2 * THREADS; i++) {
        workers[i].context = context;
        workers[i].board = &board;
        workers[i].number = i % THREADS;
        CHECK(pthread_create(&threads[i], NULL, i < THREADS ? owner : user, &workers[i]) == 0);
    }
    for (i = 0; i < 2 * THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    share_end(context, &board);
}

TEST_MAIN(run)
