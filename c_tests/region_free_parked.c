/* Broken if this fails: llcl_region_free does not wait for messages with LLCL_FLAG_PARK whose
 * payload lies in the region, so that these fail or bring other bytes; or in a callback, where it
 * cannot wait, it ends the region all the same.
 * ranks: 2
 */
#include "am.h"
#include "stopped.h"

enum { COUNT };
enum { SIZE = 96, MOST = 100000 };

struct freeing {
    llcl_context_t *context;
    llcl_region_t *region;
    uint64_t called;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 16;
    config->queue_entries = 8;
}

static void count(llcl_am_t *message, void *data)
{
    size_t size = 0;
    const unsigned char *payload = am_payload(message, &size);
    CHECK_EQUAL(size, SIZE);
    CHECK(pattern_holds(payload, size, 3));
    word_add(data, 1);
}

static void free_in_callback(void *data, llcl_status_t status)
{
    struct freeing *freeing = data;
    CHECK_OK(status);
    CHECK_STATUS(llcl_region_free(freeing->region), LLCL_RETRY_BUSY);
    word_set(&freeing->called, 1);
}

/* Not by in_callback_of(), which waits until nothing is under way. */
static void refused_in_callback(struct freeing *freeing)
{
    struct shared own;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    region_make(freeing->context, ALLOCATED, 64, &own);
    add.peer = llcl_rank(freeing->context);
    add.target = llcl_region_remote(own.region, 0);
    add.on_complete = llcl_callback(free_in_callback, freeing);
    CHECK_OK(llcl_fetch_add_async(freeing->context, &add));
    AWAIT(&freeing->called, 1);
}

/* Posts messages to a peer that handles none until no more may be parked. None has a completion, so
 * the next flush tells of a failure. */
static uint64_t park(llcl_context_t *context, const struct shared *target, llcl_region_t *region)
{
    llcl_am_params_t am = am_to(1, COUNT, NULL, 0);
    uint64_t posted = 0;
    am.kind = LLCL_AM_LONG;
    am.flags = LLCL_FLAG_PARK;
    am.source = llcl_region_local(region, 0);
    am.destination = remote_at(target, 1, 0);
    am.payload_size = SIZE;
    while (llcl_try_am_async(context, &am) == LLCL_OK)
        CHECK(posted++ < MOST);
    CHECK(am_stats(context).parked > 0);
    return posted;
}

static void *wake(void *data)
{
    sleep_ms(100);
    CHECK(kill(*(pid_t *)data, SIGCONT) == 0);
    return NULL;
}

static uint64_t send_all(llcl_context_t *context, const struct shared *target)
{
    struct freeing freeing = {context, NULL, 0};
    struct shared mine;
    pthread_t waker;
    pid_t stopped;
    uint64_t posted;
    region_make(context, ALLOCATED, SIZE, &mine);
    pattern_fill(mine.bytes, SIZE, 3);
    freeing.region = mine.region;
    CHECK_OK(llcl_connect(context, NULL, 0));
    stopped = peer_stop(context, 1);
    posted = park(context, target, mine.region);
    refused_in_callback(&freeing);
    CHECK(pthread_create(&waker, NULL, wake, &stopped) == 0);
    CHECK_OK(llcl_region_free(mine.region));
    CHECK(pthread_join(waker, NULL) == 0);
    CHECK_OK(llcl_flush_all(context));
    return posted;
}

static void run(llcl_context_t *context)
{
    uint64_t *counted = am_new(sizeof *counted), posted = 0, all[2];
    struct shared target;
    share(context, ALLOCATED, SIZE, &target);
    am_register(context, COUNT, count, counted);
    fence(context);
    if (llcl_rank(context) == 0)
        posted = send_all(context, &target);
    CHECK_OK(llcl_allgather_bytes(context, &posted, sizeof posted, all));
    if (llcl_rank(context) == 1)
        AM_AWAIT(context, counted, all[0]);
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, configure)
