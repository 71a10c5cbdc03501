/* Broken if this fails: llcl_flush_within or llcl_am_within waits longer than it may for a peer
 * that executes nothing; changes what is under way; or writes the reply of a call that has been
 * given up; or llcl_flush_within does not wait for messages, or for parked requests.
 * ranks: 2
 * cma: off
 */
#include "am.h"
#include "stopped.h"

#define SOON INT64_C(30000000)
#define MANY 100000u

/* Fewer slots than messages may wait in the library. */
static void configure(llcl_config_t *config)
{
    config->am_slots = 16;
}

static void answer(llcl_am_t *message, void *data)
{
    uint64_t value = word_add(data, 1) + 42;
    CHECK_OK(llcl_am_reply(message, &value, sizeof value));
}

static void in_callback(void *data, llcl_status_t status)
{
    llcl_am_params_t am = am_to(0, 2, NULL, 0);
    CHECK_OK(status);
    CHECK_STATUS(llcl_flush_within(data, 0, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_within(data, &am, 0), LLCL_ERR_STATE);
}

static void refused(llcl_context_t *context)
{
    llcl_am_params_t am = am_to(1, 2, NULL, 0);
    CHECK_STATUS(llcl_flush_within(NULL, 0, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_flush_within(context, 2, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_within(NULL, &am, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_within(context, NULL, 0), LLCL_ERR_INVALID);
    am.id = LLCL_AM_IDS;
    CHECK_STATUS(llcl_am_within(context, &am, -1), LLCL_ERR_INVALID);
    am.id = 3;
    CHECK_STATUS(llcl_am_within(context, &am, -1), LLCL_ERR_NO_HANDLER);
    am.id = 2;
    am.on_complete = llcl_callback(in_callback, context);
    CHECK_STATUS(llcl_am_within(context, &am, -1), LLCL_ERR_INVALID);
    POST(llcl_try_am_async(context, &am));
    CHECK_OK(llcl_flush_within(context, LLCL_ALL_PEERS, -1));
}

static void given_up(llcl_context_t *context, const struct shared *target)
{
    uint64_t reply = 0, ended = 0, i;
    size_t size = 77;
    llcl_am_params_t am = am_to(1, 2, NULL, 0);
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    pid_t stopped;
    am.reply = &reply;
    am.reply_capacity = sizeof reply;
    am.reply_size = &size;
    CHECK_OK(llcl_am_within(context, &am, TEST_PATIENCE_NS));
    CHECK(reply == 42 && size == sizeof reply);
    /* A reply that does not fit: only its size comes. */
    size = 77;
    am.reply_capacity = sizeof reply - 1;
    CHECK_STATUS(llcl_am_within(context, &am, TEST_PATIENCE_NS), LLCL_ERR_RANGE);
    CHECK(reply == 42 && size == sizeof reply);
    am.reply_capacity = sizeof reply;
    reply = 5;
    size = 77;
    stopped = peer_stop(context, 1);
    add.peer = 1;
    add.target = remote_at(target, 1, 0);
    add.operand = 1;
    add.on_complete = llcl_add_on(&ended);
    POST(llcl_try_fetch_add_async(context, &add));
    CHECK_STATUS(llcl_flush_within(context, 1, 0), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_flush_within(context, 1, SOON), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_flush_within(context, LLCL_ALL_PEERS, SOON), LLCL_ERR_TIMEOUT);
    CHECK_OK(llcl_flush_within(context, 0, TEST_PATIENCE_NS));
    CHECK_STATUS(llcl_am_within(context, &am, 0), LLCL_ERR_TIMEOUT);
    for (i = 0; i < 3; i++)
        CHECK_STATUS(llcl_am_within(context, &am, SOON), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_flush_within(context, 1, 0), LLCL_ERR_TIMEOUT);
    CHECK_EQUAL(word_get(&ended), 0);
    CHECK(kill(stopped, SIGCONT) == 0);
    CHECK_OK(llcl_flush_within(context, 1, 2 * TEST_PATIENCE_NS));
    CHECK_EQUAL(word_get(&ended), 1);
    /* The answers of what was given up have come, to nobody. */
    CHECK(reply == 5 && size == 77);
    CHECK_OK(llcl_am_within(context, &am, -1));
    CHECK(reply > 42 && size == sizeof reply);
}

/* Posts messages to the stopped rank until no more may wait in the library. */
static void fill(llcl_context_t *context, uint32_t flags)
{
    llcl_am_params_t am = am_to(1, 2, NULL, 0);
    llcl_status_t status;
    uint64_t posted = 0;
    am.flags = flags;
    do {
        status = llcl_try_am_async(context, &am);
        posted += status == LLCL_OK;
        CHECK(posted < MANY);
        sched_yield();
    } while (status == LLCL_OK || (flags == LLCL_FLAG_DEFER && status == LLCL_RETRY_QUEUE_FULL));
    CHECK(status > 0);
}

/* A flush of that rank, or of all, is not over. */
static void flushes_late(llcl_context_t *context, pid_t stopped)
{
    CHECK_STATUS(llcl_flush_within(context, 1, SOON), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_flush_within(context, LLCL_ALL_PEERS, SOON), LLCL_ERR_TIMEOUT);
    CHECK_OK(llcl_flush_within(context, 0, TEST_PATIENCE_NS));
    CHECK(kill(stopped, SIGCONT) == 0);
    CHECK_OK(llcl_flush_within(context, 1, 2 * TEST_PATIENCE_NS));
}

/* A flush waits for messages that were sent, that are parked, and that the lane has not sent. */
static void flushes(llcl_context_t *context)
{
    llcl_am_params_t am = am_to(1, 2, NULL, 0);
    uint64_t ended = 0;
    pid_t stopped = peer_stop(context, 1);
    am.on_complete = llcl_store_on(&ended);
    POST(llcl_try_am_async(context, &am));
    flushes_late(context, stopped);
    CHECK_EQUAL(word_get(&ended), 1);
    stopped = peer_stop(context, 1);
    fill(context, LLCL_FLAG_PARK);
    flushes_late(context, stopped);
    if (test_mode_is("direct"))
        return;
    stopped = peer_stop(context, 1);
    fill(context, LLCL_FLAG_DEFER);
    flushes_late(context, stopped);
}

static void run(llcl_context_t *context)
{
    uint64_t *calls = am_new(sizeof *calls);
    struct shared target;
    share(context, REGISTERED, 64, &target);
    if (llcl_rank(context) == 1)
        am_register(context, 2, answer, calls);
    fence(context);
    if (llcl_rank(context) == 0) {
        given_up(context, &target);
        flushes(context);
        refused(context);
    }
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, configure)
