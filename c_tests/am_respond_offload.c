/* Broken if this fails: in offload mode the completion of a message that a response ends fires on
 * the thread that polls for messages, and not on the progress thread.
 * ranks: 2
 * modes: offload
 * threads: yes
 */
#include "am.h"

enum { ASK, ANSWER };
enum { ALL = 200 };

struct rank {
    pthread_t owner;
    uint64_t ended, by_owner, answered;
};

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, ANSWER, NULL, 0);
    (void)data;
    CHECK_OK(llcl_am_respond(message, &am));
}

static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct rank *)data)->answered, 1);
}

static void ended(void *data, llcl_status_t status)
{
    struct rank *rank = data;
    CHECK_OK(status);
    word_add(&rank->by_owner, pthread_equal(pthread_self(), rank->owner) != 0);
    word_add(&rank->ended, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    llcl_am_params_t am = am_to(1, ASK, NULL, 0);
    int64_t end = now_ns() + AM_PATIENCE_NS;
    uint64_t i;
    rank->owner = pthread_self();
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    fence(context);
    am.on_complete = llcl_callback(ended, rank);
    for (i = 0; i < ALL && llcl_rank(context) == 0; i++) {
        CHECK_OK(llcl_am_async(context, &am));
        while (word_get(&rank->ended) <= i) {
            CHECK_OK(llcl_am_poll(context, 1, NULL));
            CHECK(now_ns() < end);
        }
    }
    CHECK_EQUAL(word_get(&rank->answered), i);
    CHECK_EQUAL(word_get(&rank->by_owner), 0);
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
