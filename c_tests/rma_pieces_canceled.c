/* Broken if this fails: llcl_finalize loses reads of many pieces on a peer that executes nothing
 * (all pieces in flight, a part of them, none), or ends one twice or before its last piece.
 * ranks: 2
 * cma: off
 */
#include "stopped.h"

enum { REQUESTS = 5, PIECES = 40 };

static uint64_t canceled, accepted;
static uint32_t fired[REQUESTS];

static void fire(void *data, llcl_status_t status)
{
    CHECK_STATUS(status, LLCL_ERR_CANCELED);
    __atomic_fetch_add((uint32_t *)data, 1, __ATOMIC_RELAXED);
    word_add(&canceled, 1);
}

/* Lets the peer go on once everything has been cancelled: llcl_finalize is collective. */
static void *wake(void *data)
{
    AWAIT(&canceled, word_get(&accepted));
    CHECK(kill(*(pid_t *)data, SIGCONT) == 0);
    return NULL;
}

static void check(llcl_context_t *context, const struct shared *target)
{
    llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
    struct shared mine;
    pthread_t thread;
    llcl_status_t status;
    pid_t stopped;
    uint32_t i;
    region_make(context, REGISTERED, PIECES * 16, &mine);
    memset(mine.bytes, 0x33, mine.size);
    stopped = peer_stop(context, 1);
    box.peer = 1;
    box.local = llcl_region_local(mine.region, 0);
    box.remote = remote_at(target, 1, 0);
    box.size = 8;
    box.dimensions = 1;
    box.extents[0] = PIECES;
    box.local_strides[0] = box.remote_strides[0] = 16;
    for (i = 0; i < REQUESTS; i++) {
        box.on_complete = llcl_callback(fire, &fired[i]);
        while ((status = llcl_try_read_strided_async(context, &box)) == LLCL_RETRY_BUSY)
            sched_yield();
        CHECK_OK(status);
    }
    CHECK_EQUAL(word_get(&canceled), 0);
    word_set(&accepted, REQUESTS);
    CHECK(pthread_create(&thread, NULL, wake, &stopped) == 0);
    CHECK_OK(test_finalize(context));
    CHECK(pthread_join(thread, NULL) == 0);
    for (i = 0; i < REQUESTS; i++)
        CHECK_EQUAL(fired[i], 1);
    CHECK_EQUAL(word_get(&canceled), REQUESTS);
    CHECK(bytes_are(mine.bytes, mine.size, 0x33));
    free(mine.bytes);
}

static void run(llcl_context_t *context)
{
    struct shared target;
    share(context, REGISTERED, 4096, &target);
    fence(context);
    if (llcl_rank(context) == 0)
        check(context, &target);
}

/* One box fits the table of operations in flight, the next one begins to. */
static void configure(llcl_config_t *config)
{
    config->in_flight = 64;
}

TEST_MAIN_CONFIG(run, configure)
