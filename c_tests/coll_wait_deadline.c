/* Broken if this fails: llcl_coll_wait with a time-out goes on as long as messages come.
 * ranks: 2
 * wire: no
 */
#include "am.h"

enum { SLOW, MESSAGES = 1500, LONG_NS = 1000000, TIMEOUT_NS = 50000000 };

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void slow(llcl_am_t *message, void *data)
{
    int64_t end = now_ns() + LONG_NS;
    (void)message;
    while (now_ns() < end)
        usleep(100);
    word_add(data, 1);
}

static void run(llcl_context_t *context)
{
    uint64_t *handled = am_new(sizeof *handled), i;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *barrier;
    am_register(context, SLOW, slow, handled);
    CHECK_OK(llcl_team_world(context, &params.team));
    CHECK_OK(llcl_barrier_init(&params, &barrier));
    if (llcl_rank(context) == 1)
        for (i = 0; i < MESSAGES; i++) {
            llcl_am_params_t am = am_to(0, SLOW, NULL, 0);
            CHECK_OK(llcl_am_async(context, &am));
        }
    CHECK_OK(llcl_coll_start(barrier));
    if (llcl_rank(context) == 0) {
        /* Some messages wait in the slots. A look runs the handlers of 64 at most. */
        usleep(100000);
        CHECK_STATUS(llcl_coll_wait(barrier, TIMEOUT_NS), LLCL_ERR_TIMEOUT);
        CHECK(word_get(handled) < MESSAGES / 2);
        AM_AWAIT(context, handled, MESSAGES);
    }
    CHECK_OK(llcl_coll_wait(barrier, TEST_PATIENCE_NS));
    CHECK_OK(llcl_coll_free(barrier));
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
