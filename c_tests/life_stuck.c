/* A callback or a handler that does not return keeps llcl_finalize for as long as LLCL_FINALIZE_MS
 * says and not for ever; it answers LLCL_ERR_TIMEOUT, and the other rank leaves in order.
 * ranks: 2
 * modes: auto offload
 * timeout: 30 */
#include "shared.h"

static uint64_t inside;

static void stuck(void *data, llcl_status_t status)
{
    (void)data;
    (void)status;
    word_add(&inside, 1);
    for (;;)
        sleep(60);
}

static void stuck_handler(llcl_am_t *message, void *data)
{
    (void)message;
    stuck(data, LLCL_OK);
}

static void run(llcl_context_t *context)
{
    struct shared memory;
    uint32_t me = llcl_rank(context), peer = 1 - me;
    int in_handler = getenv("LLCL_EXECUTION") && test_mode_is("offload");
    int64_t start;
    share(context, ALLOCATED, 4096, &memory);
    CHECK_OK(llcl_am_register(context, 1, stuck_handler, NULL));
    fence(context);
    if (me == 1) {
        llcl_write_value_params_t value = {0};
        value.peer = me;
        value.destination = remote_at(&memory, me, 0);
        value.size = 8;
        value.flags = LLCL_FLAG_DEFER;
        value.on_complete = llcl_callback(stuck, NULL);
        if (!in_handler)
            POST(llcl_try_write_value_async(context, &value));
    } else if (in_handler) {
        llcl_am_params_t am = {0};
        am.peer = peer;
        am.id = 1;
        POST(llcl_try_am_async(context, &am));
    }
    if (me == 1)
        AWAIT(&inside, 1);
    start = now_ns();
    CHECK_STATUS(test_finalize(context), me == 1 ? LLCL_ERR_TIMEOUT : LLCL_OK);
    CHECK(now_ns() - start < INT64_C(6000000000));
    if (me == 1)
        CHECK_STATUS(llcl_flush_all(context), LLCL_ERR_STATE);
}

TEST_MAIN(run)
