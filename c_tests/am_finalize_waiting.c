/* Broken if this fails: llcl_finalize loses messages that wait in the library, for slots of a peer
 * that executes nothing or behind an operation that finds no place: a completion does not fire, or
 * fires twice, or with another status than LLCL_ERR_CANCELED.
 * ranks: 2
 * modes: auto offload
 * cma: off
 */
#include "am.h"
#include "stopped.h"

enum { COUNT };
enum { SLOTS = 4, IN_FLIGHT = 64, MESSAGES = 20, BEHIND = 8 };

struct counts {
    struct tally adds, local, complete;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
    config->in_flight = IN_FLIGHT;
}

static void count(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static void send_some(llcl_context_t *context, struct counts *counts, int many)
{
    llcl_am_params_t am = am_to(1, COUNT, NULL, 0);
    am.flags = LLCL_FLAG_DEFER;
    am.on_local = count_in(&counts->local);
    am.on_complete = count_in(&counts->complete);
    while (many--)
        POST(llcl_try_am_async(context, &am));
}

/* More than may be under way: the last one stops the queue. */
static void fill(llcl_context_t *context, const struct shared *target, struct counts *counts)
{
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    int i;
    add.peer = 1;
    add.flags = LLCL_FLAG_DEFER;
    add.target = remote_at(target, 1, 0);
    add.on_complete = count_in(&counts->adds);
    for (i = 0; i <= IN_FLIGHT; i++)
        POST(llcl_try_fetch_add_async(context, &add));
}

/* Lets the peer go on when everything was cancelled: llcl_finalize is collective. */
struct waking {
    pid_t stopped;
    const struct counts *counts;
};

static void *wake(void *data)
{
    struct waking *waking = data;
    AWAIT(&waking->counts->complete.fired, MESSAGES + BEHIND);
    AWAIT(&waking->counts->adds.fired, IN_FLIGHT + 1);
    CHECK(kill(waking->stopped, SIGCONT) == 0);
    return NULL;
}

static void check(llcl_context_t *context, const struct shared *target)
{
    struct counts *counts = am_new(sizeof *counts);
    struct waking waking;
    pthread_t thread;
    CHECK_OK(llcl_connect(context, NULL, 0));
    waking.stopped = peer_stop(context, 1);
    waking.counts = counts;
    send_some(context, counts, MESSAGES);
    fill(context, target, counts);
    sleep_ms(50);
    send_some(context, counts, BEHIND);
    CHECK(pthread_create(&thread, NULL, wake, &waking) == 0);
    CHECK_OK(test_finalize(context));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(counts->adds.fired, IN_FLIGHT + 1);
    CHECK_EQUAL(counts->adds.failed, IN_FLIGHT + 1);
    CHECK_EQUAL(counts->complete.fired, MESSAGES + BEHIND);
    CHECK_EQUAL(counts->complete.failed, MESSAGES + BEHIND);
    CHECK_STATUS((llcl_status_t)counts->complete.last, LLCL_ERR_CANCELED);
    /* Those that were sent have ended well on this side. */
    CHECK_EQUAL(counts->local.fired, MESSAGES + BEHIND);
    CHECK_EQUAL(counts->local.failed, MESSAGES + BEHIND - SLOTS);
    CHECK_STATUS((llcl_status_t)counts->local.last, LLCL_ERR_CANCELED);
}

static void run(llcl_context_t *context)
{
    uint64_t *counted = am_new(sizeof *counted);
    struct shared target;
    share(context, REGISTERED, 64, &target);
    am_register(context, COUNT, count, counted);
    fence(context);
    if (llcl_rank(context) == 0)
        check(context, &target);
}

int main(void)
{
    CHECK(setenv("LLCL_FINALIZE_MS", "500", 1) == 0);
    return test_main(run, configure);
}
