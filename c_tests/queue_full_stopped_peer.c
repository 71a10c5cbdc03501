/* Broken if this fails: with a peer that executes nothing, posting waits, loses or grows memory
 * instead of answering "try again" at once (the queue is full; in direct mode: no tag is free); or
 * what was accepted does not complete exactly once when the peer goes on.
 * ranks: 2 3
 * cma: off
 */
#include "stopped.h"

#define MOST 20000u

static uint32_t fired[MOST];
static uint64_t total;

static void fire(void *data, llcl_status_t status)
{
    CHECK_OK(status);
    __atomic_fetch_add((uint32_t *)data, 1, __ATOMIC_RELAXED);
    word_add(&total, 1);
}

static void configure(llcl_config_t *config)
{
    config->queue_entries = 64;
    config->in_flight = 64;
}

static llcl_status_t post(llcl_context_t *context, const struct shared *target, uint32_t number)
{
    llcl_fetch_add_params_t add = {0};
    add.peer = 1;
    add.target = remote_at(target, 1, 0);
    add.operand = 1;
    add.on_complete = llcl_callback(fire, &fired[number]);
    return llcl_try_fetch_add_async(context, &add);
}

static void fill(llcl_context_t *context, const struct shared *target)
{
    llcl_status_t wanted = test_mode_is("direct") ? LLCL_RETRY_NO_TAG : LLCL_RETRY_QUEUE_FULL;
    llcl_status_t status = LLCL_OK;
    pid_t stopped = peer_stop(context, 1);
    uint32_t accepted = 0, busy = 0, i;
    int64_t begin = now_ns();
    while (accepted < MOST) {
        status = post(context, target, accepted);
        if (status == LLCL_OK)
            accepted++;
        else if (status == LLCL_RETRY_BUSY && busy++ < 1000)
            sched_yield();
        else
            break;
    }
    CHECK(status > 0);
    /* The executor may still take some out of the queue: in the end it stays full. */
    for (i = 0; i < 200 && accepted < MOST; i++) {
        status = post(context, target, accepted);
        accepted += status == LLCL_OK;
        usleep(1000);
    }
    CHECK_STATUS(status, wanted);
    CHECK(accepted >= 64 && accepted < 2000);
    CHECK(now_ns() - begin < INT64_C(5000000000));
    CHECK_EQUAL(word_get(&total), 0);
    CHECK(kill(stopped, SIGCONT) == 0);
    AWAIT(&total, accepted);
    sleep_ms(10);
    for (i = 0; i < accepted; i++)
        CHECK_EQUAL(fired[i], 1);
    CHECK_EQUAL(fired[accepted], 0);
    CHECK_EQUAL(word_get(&total), accepted);
    POST(post(context, target, accepted));
    AWAIT(&total, accepted + 1);
}

static void run(llcl_context_t *context)
{
    struct shared target;
    share(context, REGISTERED, 64, &target);
    fence(context);
    if (llcl_rank(context) == 0)
        fill(context, &target);
    fence(context);
    if (llcl_rank(context) == 1)
        CHECK(word_get(target.words) >= 65);
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, configure)
