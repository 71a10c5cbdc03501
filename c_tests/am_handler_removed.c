/* Broken if this fails: a message that was accepted ends well although its handler is removed
 * before the peer handles it; or writes `reply_size`, which only an answer may change; or a
 * message with neither answer nor completion, which waits in the library then, is lost, and no
 * flush tells of it.
 * ranks: 2
 * modes: auto offload
 * threads: 2
 */
#include "am.h"

enum { GONE };
enum { MOST = 100000, KEPT = 77 };

static void never(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
    test_fail(__FILE__, __LINE__, "a handler runs that was removed");
}

/* More messages than the peer has slots. */
static void fill(llcl_context_t *context)
{
    llcl_am_params_t am = am_to(1, GONE, NULL, 0);
    llcl_status_t status;
    uint64_t posted = 0;
    am.flags = LLCL_FLAG_DEFER;
    while ((status = llcl_try_am_async(context, &am)) == LLCL_OK || status == LLCL_RETRY_QUEUE_FULL) {
        posted += status == LLCL_OK;
        CHECK(posted < MOST);
        sched_yield();
    }
    CHECK_STATUS(status, LLCL_RETRY_NO_CREDIT);
}

/* Sets the peer's word. Does not wait, since handlers run in calls that wait. */
static void tell(llcl_context_t *context, const struct shared *told, uint32_t peer)
{
    llcl_write_value_params_t tell = LLCL_WRITE_VALUE_PARAMS_INIT;
    tell.peer = peer;
    tell.destination = remote_at(told, peer, 0);
    tell.value = 1;
    tell.size = sizeof tell.value;
    POST(llcl_try_write_value_async(context, &tell));
}

static void send_all(llcl_context_t *context, const struct shared *told)
{
    uint64_t reply = 5;
    size_t size = KEPT;
    struct tally tally = {0, 0, 0};
    llcl_am_params_t am = am_to(1, GONE, NULL, 0);
    am.reply = &reply;
    am.reply_capacity = sizeof reply;
    am.reply_size = &size;
    am.on_complete = count_in(&tally);
    POST(llcl_try_am_async(context, &am));
    fill(context);
    tell(context, told, 1);
    AM_AWAIT(context, &tally.fired, 1);
    CHECK_STATUS((llcl_status_t)tally.last, LLCL_ERR_NO_HANDLER);
    CHECK(size == KEPT && reply == 5);
    if (is_near(context, 1)) { /* else only that rank knows its handlers */
        CHECK_STATUS(llcl_flush(context, 1), LLCL_ERR_NO_HANDLER);
        CHECK(strstr(llcl_last_error(), "a message to rank 1") != NULL);
    }
    CHECK_OK(llcl_flush(context, 1));
}

static void run(llcl_context_t *context)
{
    struct shared told;
    share(context, ALLOCATED, 64, &told);
    CHECK_OK(llcl_connect(context, NULL, 0));
    if (llcl_rank(context) == 1)
        am_register(context, GONE, never, NULL);
    fence(context);
    if (llcl_rank(context) == 0) {
        AWAIT(told.words, 1);
        send_all(context, &told);
    } else {
        /* From here on without a call that waits. */
        tell(context, &told, 0);
        AWAIT(told.words, 1);
        am_register(context, GONE, NULL, NULL);
    }
    fence(context);
    share_end(context, &told);
}

TEST_MAIN_CONFIG(run, am_few_polled)
