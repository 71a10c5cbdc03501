/* Broken if this fails: a thread that waits for a word is told LLCL_ERR_PEER_DEAD after the death
 * of those who could have changed it, although an operation of its own rank that is under way with
 * a living, slow peer will change it. Started alone it drives the rounds: wait_word_own_operation
 * [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "kill.h"
#include "am.h"
#include "stopped.h"

#define SLOW 1
#define VICTIM 2

struct waiter {
    llcl_context_t *context;
    uint64_t *word;
    int64_t peer; /* negative: anybody */
    llcl_status_t status;
    pthread_t thread;
};

static void *wait_for_ever(void *data)
{
    struct waiter *waiter = data;
    waiter->status = waiter->peer < 0
        ? llcl_wait_word(waiter->context, waiter->word, 1, -1)
        : llcl_wait_word_from(waiter->context, waiter->word, 1, -1, (uint32_t)waiter->peer);
    return NULL;
}

static void begin(struct waiter *waiter, llcl_context_t *context, uint64_t *word, int64_t peer)
{
    waiter->context = context;
    waiter->word = word;
    waiter->peer = peer;
    CHECK(pthread_create(&waiter->thread, NULL, wait_for_ever, waiter) == 0);
}

static void nothing(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
}

static void write_one(llcl_context_t *context, uint32_t peer, llcl_remote_t to)
{
    llcl_write_value_params_t value = {0};
    value.peer = peer;
    value.destination = to;
    value.value = 1;
    value.size = 8;
    CHECK_OK(llcl_write_value(context, &value));
}

/* A message, and a write that the owner of the memory executes. */
static void post(llcl_context_t *context, llcl_remote_t to, uint64_t *message, uint64_t *write)
{
    llcl_am_params_t am = am_to(SLOW, 0, NULL, 0);
    llcl_write_value_params_t value = {0};
    am.on_complete = llcl_add_on(message);
    POST(llcl_try_am_async(context, &am));
    value.peer = SLOW;
    value.destination = to;
    value.value = 1;
    value.size = 8;
    value.on_complete = llcl_add_on(write);
    POST(llcl_try_write_value_async(context, &value));
}

static void wait_for_death(llcl_context_t *context)
{
    while (llcl_peer_alive(context, VICTIM) == LLCL_OK)
        usleep(500);
}

/* The slow peer stands still from before the death until long after it. */
static void wait_beside(llcl_context_t *context, struct shared *lonely, struct shared *target)
{
    struct waiter waiters[3];
    uint64_t written = 0, untouched = 0;
    pid_t slow = peer_stop(context, SLOW);
    int i;
    post(context, remote_at(target, SLOW, 8), &lonely->words[5], &written);
    begin(&waiters[0], context, &lonely->words[5], -1);
    begin(&waiters[1], context, &written, VICTIM);
    begin(&waiters[2], context, &untouched, VICTIM);
    kill_peer(context, VICTIM, 0);
    wait_for_death(context);
    /* Not an order of events: who gives up too early does it within this time. */
    sleep_ms(500);
    CHECK(kill(slow, SIGCONT) == 0);
    for (i = 0; i < 3; i++)
        CHECK(pthread_join(waiters[i].thread, NULL) == 0);
    CHECK_OK(waiters[0].status);
    CHECK_OK(waiters[1].status);
    CHECK_STATUS(waiters[2].status, LLCL_ERR_PEER_DEAD);
    write_one(context, SLOW, remote_at(target, SLOW, 16));
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context);
    struct shared lonely, target;
    share(context, ALLOCATED, 4096, &lonely);
    share(context, REGISTERED, 4096, &target);
    am_register(context, 0, nothing, NULL);
    if (me == VICTIM)
        write_one(context, 0, remote_at(&lonely, 0, 0));
    if (me == 0)
        write_one(context, SLOW, remote_at(&target, SLOW, 0));
    fence(context);
    if (me == VICTIM) {
        sleep(10);
        _exit(1);
    }
    if (me == 0)
        wait_beside(context, &lonely, &target);
    else
        AWAIT(&target.words[2], 1);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap 0\n", me);
    fflush(stdout);
}

static void set_up(int round)
{
    kill_modes_in_turn(round);
    setenv("LLCL_CMA", "off", 1);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"beside a slow peer", 3, 3, set_up, run, 0};
    return kill_main(&plan, count, arguments);
}
