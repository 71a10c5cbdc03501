/* Broken if this fails: a call with a time-out runs the handlers of all messages that have come,
 * before it looks at the clock.
 * ranks: 2
 * wire: no
 */
#include "am.h"

enum { SLOW, MESSAGES = 300, LONG_NS = 5000000, TIMEOUT_NS = 4 * LONG_NS };
/* Four handlers fit into the time-out, and two more into the longest tick of the kernel's clock. */
enum { MOST = 4 + 2 + 4 };
/* A look of llcl_coll_wait runs the handlers of so many messages. */
enum { LOOK = 64 };

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void slow(llcl_am_t *message, void *data)
{
    int64_t end = now_ns() + LONG_NS;
    (void)message;
    while (now_ns() < end)
        usleep(500);
    word_add(data, 1);
}

static void check_wait(llcl_context_t *context, uint64_t *handled)
{
    uint64_t before = word_get(handled), word = 0;
    llcl_status_t status = llcl_wait_word(context, &word, 1, TIMEOUT_NS);
    CHECK_STATUS(status, LLCL_ERR_TIMEOUT);
    CHECK(word_get(handled) - before <= MOST);
}

static void check_message(llcl_context_t *context, uint64_t *handled)
{
    llcl_am_params_t am = am_to(1, SLOW, NULL, 0);
    uint64_t before = word_get(handled);
    llcl_status_t status = llcl_am_within(context, &am, TIMEOUT_NS);
    CHECK(status == LLCL_OK || status == LLCL_ERR_TIMEOUT);
    CHECK(word_get(handled) - before <= MOST);
    before = word_get(handled);
    status = llcl_flush_within(context, 1, TIMEOUT_NS);
    CHECK(status == LLCL_OK || status == LLCL_ERR_TIMEOUT);
    CHECK(word_get(handled) - before <= MOST);
}

/* Rank 1 starts the barrier later. Many of its messages are left. */
static void check_plan(llcl_coll_t *barrier, uint64_t *handled)
{
    uint64_t before = word_get(handled);
    CHECK_STATUS(llcl_coll_wait(barrier, TIMEOUT_NS), LLCL_ERR_TIMEOUT);
    CHECK(word_get(handled) - before <= LOOK + MOST);
}

static void run(llcl_context_t *context)
{
    uint64_t *handled = am_new(sizeof *handled), i;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *barrier;
    CHECK_OK(llcl_team_world(context, &params.team));
    CHECK_OK(llcl_barrier_init(&params, &barrier));
    am_register(context, SLOW, slow, handled);
    fence(context);
    if (llcl_rank(context) == 1) {
        for (i = 0; i < MESSAGES; i++) {
            llcl_am_params_t am = am_to(0, SLOW, NULL, 0);
            CHECK_OK(llcl_am_async(context, &am));
        }
        usleep(900000);
    }
    CHECK_OK(llcl_coll_start(barrier));
    if (llcl_rank(context) == 0) {
        /* The messages wait in the slots. */
        usleep(200000);
        check_wait(context, handled);
        check_message(context, handled);
        check_plan(barrier, handled);
        AM_AWAIT(context, handled, MESSAGES);
    }
    CHECK_OK(llcl_coll_wait(barrier, TEST_PATIENCE_NS));
    CHECK_OK(llcl_coll_free(barrier));
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
