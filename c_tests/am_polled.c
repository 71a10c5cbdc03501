/* Broken if this fails: with LLCL_AM_HANDLERS_POLLED a handler runs on a thread of the library,
 * inside a callback, or before the program polls; or a call that waits, the exchange of the
 * bootstrap included, does not run handlers, so that two ranks that wait for each other hang.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

enum { COUNT, PING };
#define CALLS 9u

struct rank {
    llcl_context_t *context;
    uint64_t count, by_others, in_callback, pinged;
    pthread_t owner;
    int in_library, refused;
};

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

/* The only thread of the program that calls the library is `owner`, and only with in_library
 * set. */
static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    if (!pthread_equal(pthread_self(), rank->owner) || !rank->in_library)
        word_add(&rank->by_others, 1);
    if (!rank->refused) {
        CHECK_STATUS(llcl_am_poll(rank->context, 1, NULL), LLCL_ERR_STATE);
        CHECK_STATUS(llcl_am_wait(rank->context, 0), LLCL_ERR_STATE);
        rank->refused = 1;
    }
    word_add(&rank->count, 1);
}

static void send(struct rank *rank, llcl_completion_t on_complete)
{
    llcl_am_params_t am = am_to(1 - llcl_rank(rank->context), COUNT, NULL, 0);
    llcl_status_t status;
    am.on_complete = on_complete;
    while ((status = llcl_try_am_async(rank->context, &am)) > 0)
        usleep(50);
    CHECK_OK(status);
}

/* One message each way, which a call that waits must handle; the peer's acknowledgement says that
 * it has. */
static void through(struct rank *rank, uint32_t call, uint64_t expected)
{
    llcl_context_t *context = rank->context;
    uint64_t here = 0;
    uint32_t handled = 0;
    int64_t end = now_ns() + AM_PATIENCE_NS;
    send(rank, llcl_store_on(&here));
    rank->in_library = 1;
    switch (call) {
    case 0: /* polls, and the messages' ends by them or by the progress thread */
        while (!word_get(&here) || word_get(&rank->count) < expected) {
            uint32_t some = 7;
            CHECK(now_ns() < end);
            CHECK_OK(llcl_am_poll(context, 64, &some));
            CHECK(some <= 64);
            handled += some;
        }
        break;
    case 1:
        AM_AWAIT(context, &here, 1);
        break;
    case 2:
        CHECK_OK(llcl_flush(context, 1 - llcl_rank(context)));
        CHECK_EQUAL(word_get(&here), 1);
        break;
    case 3:
        while (!word_get(&here)) {
            CHECK(now_ns() < end);
            CHECK_OK(llcl_progress(context));
        }
        break;
    case 4:
        while (!word_get(&here)) {
            llcl_status_t status = llcl_am_wait(context, 1000000);
            CHECK(now_ns() < end);
            CHECK(status == LLCL_OK || status == LLCL_ERR_TIMEOUT);
        }
        break;
    default: /* the exchange below */
        break;
    }
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    AM_AWAIT(context, &here, 1);
    rank->in_library = 0;
    CHECK_EQUAL(word_get(&here), 1);
    CHECK(handled <= word_get(&rank->count));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint64_t ends = 0, i;
    uint32_t handled = 7;
    CHECK_EQUAL(am_limits(context).am_handlers, LLCL_AM_HANDLERS_POLLED);
    rank->context = context;
    rank->owner = pthread_self();
    am_register(context, COUNT, handle, rank);
    rank->in_library = 1;
    CHECK_STATUS(llcl_am_poll(context, 0, &handled), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_poll(NULL, 1, &handled), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_wait(NULL, 0), LLCL_ERR_INVALID);
    CHECK_OK(llcl_am_poll(context, 1, &handled));
    CHECK_EQUAL(handled, 0);
    CHECK_STATUS(llcl_am_wait(context, 20000000), LLCL_ERR_TIMEOUT);
    fence(context);
    rank->in_library = 0;
    /* Nobody calls the library: nothing runs, however long the library's threads have time. */
    sleep_ms(50); /* until the other one has left the fence, too */
    for (i = 0; i < 3; i++)
        send(rank, llcl_add_on(&ends));
    sleep_ms(100);
    CHECK_EQUAL(word_get(&rank->count), 0);
    rank->in_library = 1;
    AM_AWAIT(context, &rank->count, 3);
    AM_AWAIT(context, &ends, 3);
    fence(context);
    rank->in_library = 0;
    for (i = 0; i < CALLS; i++)
        through(rank, (uint32_t)i % 6, 4 + i);
    rank->in_library = 1;
    fence(context);
    CHECK_EQUAL(word_get(&rank->count), 3 + CALLS);
    CHECK_EQUAL(word_get(&rank->by_others), 0);
    CHECK_EQUAL(rank->refused, 1);
}

TEST_MAIN_CONFIG(run, configure)
