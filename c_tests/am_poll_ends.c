/* Broken if this fails: llcl_am_poll of a rank that has no handlers does not end its messages: here
 * it alone can, since the progress thread is in a callback.
 * ranks: 2
 * modes: auto
 * threads: yes
 */
#include "am.h"

struct held {
    uint64_t entered, leave;
};

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void hold(void *data, llcl_status_t status)
{
    struct held *held = data;
    CHECK_OK(status);
    word_set(&held->entered, 1);
    AWAIT(&held->leave, 1);
}

static void quick(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
}

static void run(llcl_context_t *context)
{
    struct held *held = am_new(sizeof *held);
    uint64_t *ended = am_new(sizeof *ended);
    struct shared words;
    int64_t end;
    share(context, ALLOCATED, 64, &words);
    if (llcl_rank(context) == 1)
        am_register(context, 0, quick, NULL);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_am_params_t am = am_to(1, 0, NULL, 0);
        llcl_write_value_params_t value = {0};
        value.peer = 1;
        value.value = 1;
        value.size = 8;
        value.flags = LLCL_FLAG_DEFER;
        value.destination = remote_at(&words, 1, 0);
        value.on_complete = llcl_callback(hold, held);
        CHECK_OK(llcl_write_value_async(context, &value));
        AWAIT(&held->entered, 1);
        am.on_complete = llcl_store_on(ended);
        POST(llcl_try_am_async(context, &am));
        for (end = now_ns() + TEST_PATIENCE_NS / 2; !word_get(ended) && now_ns() < end;)
            CHECK_OK(llcl_am_poll(context, 1, NULL));
        CHECK_EQUAL(word_get(ended), 1);
        word_set(&held->leave, 1);
    }
    share_end(context, &words);
}

TEST_MAIN_CONFIG(run, configure)
