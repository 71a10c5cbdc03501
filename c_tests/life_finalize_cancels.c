/* Broken if this fails: llcl_finalize waits for ever for operations on a peer that executes
 * nothing, instead of cancelling them after LLCL_FINALIZE_MS, in flight, queued or parked, each
 * completion once with LLCL_ERR_CANCELED; or the peer's late answer touches memory that is the
 * caller's own again.
 * ranks: 2
 * cma: off
 */
#include "stopped.h"

#define REQUESTS 200u

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
    sleep_ms(50);
    CHECK(kill(*(pid_t *)data, SIGCONT) == 0);
    return NULL;
}

static void configure(llcl_config_t *config)
{
    config->queue_entries = 16;
    config->in_flight = 64;
}

/* Every other request carries its bytes in the queue itself. */
static llcl_status_t post(llcl_context_t *context, const struct shared *target,
                          const struct shared *mine, uint32_t i)
{
    llcl_read_params_t read = {0};
    llcl_write_small_params_t small = {0};
    unsigned char bytes[400] = {0};
    read.flags = small.flags = LLCL_FLAG_PARK;
    read.peer = small.peer = 1;
    read.source = small.destination = remote_at(target, 1, 0);
    read.on_complete = small.on_complete = llcl_callback(fire, &fired[i]);
    read.destination = llcl_region_local(mine->region, i * 8);
    read.size = 8;
    small.source = bytes;
    small.size = i % 5 * 100;
    return i % 2 ? llcl_try_write_small_async(context, &small) : llcl_try_read_async(context, &read);
}

static void check(llcl_context_t *context, const struct shared *target)
{
    struct shared mine;
    pthread_t thread;
    pid_t stopped;
    uint32_t i;
    region_make(context, REGISTERED, REQUESTS * 8, &mine);
    memset(mine.bytes, 0x33, mine.size);
    stopped = peer_stop(context, 1);
    for (i = 0; i < REQUESTS; i++) {
        CHECK_OK(post(context, target, &mine, i));
    }
    word_set(&accepted, i);
    CHECK(pthread_create(&thread, NULL, wake, &stopped) == 0);
    CHECK_OK(test_finalize(context));
    CHECK(pthread_join(thread, NULL) == 0);
    for (i = 0; i < REQUESTS; i++)
        CHECK_EQUAL(fired[i], i < accepted);
    sleep_ms(50);
    CHECK(bytes_are(mine.bytes, mine.size, 0x33));
    CHECK_EQUAL(word_get(&canceled), accepted);
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

TEST_MAIN_CONFIG(run, configure)
