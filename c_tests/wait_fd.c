/* Broken if this fails: the descriptor of llcl_wait_fd is readable before what it was armed for has
 * happened, is not when it has, or misses what happens between a look and the arming; a disarmed
 * one becomes readable; or an armed one keeps llcl_finalize waiting. In direct mode handlers run in
 * polls only.
 * ranks: 2
 * cma: on off
 * threads: 2
 */
#include "am.h"
#include <poll.h>

static void configure(llcl_config_t *config)
{
    if (test_mode_is("direct"))
        config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static int readable(int descriptor, int64_t within_ns)
{
    struct pollfd it;
    int ready;
    it.fd = descriptor;
    it.events = POLLIN;
    do
        ready = poll(&it, 1, (int)(within_ns / 1000000));
    while (ready < 0 && errno == EINTR);
    CHECK(ready >= 0);
    return ready == 1;
}

static void set(llcl_context_t *context, const struct shared *target, uint32_t at, uint64_t value)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    write.peer = 1 - llcl_rank(context);
    write.destination = remote_at(target, write.peer, at * 8);
    write.value = value;
    write.size = 8;
    CHECK_OK(llcl_write_value(context, &write));
}

static void words(llcl_context_t *context, int kind)
{
    struct shared target;
    llcl_awaited_t either[2] = {LLCL_AWAITED_INIT, LLCL_AWAITED_INIT};
    uint64_t round;
    uint32_t which;
    int descriptor = -1, first;
    share(context, kind, 64, &target);
    either[0].word = &target.words[0];
    either[1].word = &target.words[1];
    CHECK_OK(llcl_wait_fd(context, NULL, 0, 0, &descriptor));
    first = descriptor;
    for (round = 1; round <= 30; round++) {
        either[0].at_least = either[1].at_least = round;
        CHECK_OK(llcl_wait_fd(context, either, 2, 0, &descriptor));
        CHECK_EQUAL(descriptor, first);
        CHECK(!readable(descriptor, 0));
        fence(context);
        set(context, &target, round % 2, round);
        CHECK(readable(descriptor, TEST_PATIENCE_NS));
        CHECK_OK(llcl_wait_any(context, either, 2, 0, 0, &which));
        CHECK_EQUAL(which, round % 2);
        /* What is there already makes it readable at once; it is armed for once. */
        CHECK_OK(llcl_wait_fd(context, either, 2, 0, &descriptor));
        CHECK(readable(descriptor, TEST_PATIENCE_NS));
        word_set(&target.words[0], 0);
        word_set(&target.words[1], 0);
        /* Another arming takes back the one before, also one that has fired. */
        either[0].at_least = either[1].at_least = UINT64_MAX;
        CHECK_OK(llcl_wait_fd(context, either, 2, 0, &descriptor));
        CHECK(!readable(descriptor, 0));
        CHECK_OK(llcl_wait_fd(context, either, 0, 0, &descriptor));
        fence(context);
        CHECK(!readable(descriptor, 0));
    }
    share_end(context, &target);
}

static void count_up(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static void messages(llcl_context_t *context)
{
    uint64_t *handled = am_new(sizeof *handled);
    llcl_am_params_t am = am_to(1 - llcl_rank(context), 3, NULL, 0);
    uint32_t i;
    int descriptor = -1;
    am_register(context, 3, count_up, handled);
    fence(context);
    for (i = 0; i < 20; i++) {
        uint64_t ended = 0;
        am.on_complete = llcl_store_on(&ended);
        POST(llcl_try_am_async(context, &am));
        while (word_get(handled) < i + 1) {
            CHECK_OK(llcl_wait_fd(context, NULL, 0, LLCL_WAIT_MESSAGES, &descriptor));
            CHECK(readable(descriptor, TEST_PATIENCE_NS));
            CHECK_OK(llcl_am_poll(context, 64, NULL));
            /* What a thread of the library has handled counts as heard of from here on. */
            (void)llcl_am_wait(context, 0);
        }
        CHECK_OK(llcl_wait_word(context, &ended, 1, TEST_PATIENCE_NS));
        fence(context);
    }
    POST(llcl_am_register(context, 3, NULL, NULL));
}

static void in_callback(void *data, llcl_status_t status)
{
    int descriptor = -1;
    CHECK_OK(status);
    CHECK_STATUS(llcl_wait_fd(data, NULL, 0, 0, &descriptor), LLCL_ERR_STATE);
}

static void refused(llcl_context_t *context)
{
    uint64_t word = 5;
    llcl_awaited_t it = LLCL_AWAITED_INIT;
    int descriptor = -7;
    it.word = &word;
    CHECK_STATUS(llcl_wait_fd(NULL, &it, 1, 0, &descriptor), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_fd(context, NULL, 1, 0, &descriptor), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_fd(context, &it, 1, 0, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_fd(context, &it, 1, 2, &descriptor), LLCL_ERR_INVALID);
    it.flags = LLCL_WAIT_FROM_PEER;
    it.peer = UINT32_MAX;
    CHECK_STATUS(llcl_wait_fd(context, &it, 1, 0, &descriptor), LLCL_ERR_INVALID);
    CHECK_EQUAL(descriptor, -7);
    in_callback_of(context, in_callback);
}

static void run(llcl_context_t *context)
{
    static uint64_t never;
    llcl_awaited_t it = LLCL_AWAITED_INIT;
    int descriptor = -1;
    refused(context);
    words(context, ALLOCATED);
    words(context, REGISTERED);
    messages(context);
    it.word = &never;
    it.at_least = 1;
    CHECK_OK(llcl_wait_fd(context, &it, 1, LLCL_WAIT_MESSAGES, &descriptor));
}

TEST_MAIN_CONFIG(run, configure)
