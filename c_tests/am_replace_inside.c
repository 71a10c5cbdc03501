/* Broken if this fails: a handler that replaces or removes itself is answered by LLCL_RETRY_BUSY
 * for ever, as if another thread ran it; or it runs again afterwards.
 * ranks: 1 2
 * threads: yes
 */
#include "am.h"

enum { ONCE };
enum { TRIES = 20000 };

struct rank {
    llcl_context_t *context;
    uint64_t first, second;
};

static void configure(llcl_config_t *config)
{
    config->am_handlers = am_handlers_by_mode();
}

static void replace(struct rank *rank, llcl_am_handler_fn handler)
{
    llcl_status_t status;
    int tries = 0;
    /* A thread that looks for messages just now may delay it. */
    while ((status = llcl_am_register(rank->context, ONCE, handler, rank)) == LLCL_RETRY_BUSY) {
        CHECK(tries++ < TRIES);
        usleep(100);
    }
    CHECK_OK(status);
}

static void second(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    CHECK_EQUAL(word_add(&rank->second, 1), 0);
    replace(rank, NULL);
}

static void first(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    CHECK_EQUAL(word_add(&rank->first, 1), 0);
    replace(rank, second);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    llcl_am_params_t am = am_to((llcl_rank(context) + 1) % llcl_size(context), ONCE, NULL, 0);
    rank->context = context;
    am_register(context, ONCE, first, rank);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    CHECK_OK(llcl_am(context, &am));
    CHECK_OK(llcl_am(context, &am));
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_NO_HANDLER);
    fence(context);
    CHECK_EQUAL(word_get(&rank->first), 1);
    CHECK_EQUAL(word_get(&rank->second), 1);
}

TEST_MAIN_CONFIG(run, configure)
