/* Broken if this fails: when the receiver of a flood of messages is killed (kill -9), a sender
 * hangs or does not get LLCL_ERR_PEER_DEAD within a second: in a try, while it waits for credit or
 * for an answer, and for each message that is pending, once. Rounds at random moments, over modes,
 * policies and 1 to 64 slots.
 * kind: alone
 * modes: auto
 * timeout: 150
 */
#include "am_kill.h"

#define RANKS 3
#define PENDING 48

enum { SLOW, KEEP, ECHO };

struct rank {
    llcl_context_t *context;
    uint64_t posted, fired, strange, over;
    uint64_t ended[3]; /* when each thread was told */
    uint64_t handled;
};

static void slow(llcl_am_t *message, void *data)
{
    (void)message;
    if (word_add(&((struct rank *)data)->handled, 1) % 8 == 0)
        usleep(200);
}

static void keep(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK(llcl_am_retain(message) != NULL);
}

static void echo(llcl_am_t *message, void *data)
{
    uint64_t number;
    (void)data;
    memcpy(&number, am_header(message, NULL), sizeof number);
    CHECK_OK(llcl_am_reply(message, &number, sizeof number));
}

static void fire(void *data, llcl_status_t status)
{
    struct rank *rank = data;
    if (status != LLCL_OK && status != LLCL_ERR_PEER_DEAD)
        __atomic_store_n(&rank->strange, (uint64_t)(int64_t)status, __ATOMIC_RELAXED);
    word_add(&rank->fired, 1);
}

/* Messages by the try, which are kept there and never answered, or handled. */
static void *by_try(void *data)
{
    struct rank *rank = data;
    llcl_status_t status = LLCL_OK;
    uint64_t round;
    test_rank = llcl_rank(rank->context);
    for (round = 0; status >= 0; round++) {
        llcl_am_params_t am = am_to(0, round % 16 ? SLOW : KEEP, &round, sizeof round);
        if (rank->posted - word_get(&rank->fired) < PENDING)
            am.on_complete = llcl_callback(fire, rank);
        else
            am.id = SLOW;
        status = llcl_try_am_async(rank->context, &am);
        if (status == LLCL_OK && am.on_complete.kind)
            rank->posted++;
        if (status > 0)
            sched_yield();
    }
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
    word_set(&rank->ended[0], (uint64_t)now_ns());
    return NULL;
}

/* Waits for credit. */
static void *by_async(void *data)
{
    struct rank *rank = data;
    llcl_status_t status = LLCL_OK;
    uint64_t round;
    test_rank = llcl_rank(rank->context);
    for (round = 0; status == LLCL_OK; round++) {
        llcl_am_params_t am = am_to(0, SLOW, &round, sizeof round);
        status = llcl_am_async(rank->context, &am);
    }
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
    word_set(&rank->ended[1], (uint64_t)now_ns());
    return NULL;
}

/* Waits for answers. */
static void *by_call(void *data)
{
    struct rank *rank = data;
    llcl_status_t status = LLCL_OK;
    uint64_t round, reply = 0;
    test_rank = llcl_rank(rank->context);
    for (round = 0; status == LLCL_OK; round++) {
        llcl_am_params_t am = am_to(0, ECHO, &round, sizeof round);
        am.reply = &reply;
        am.reply_capacity = sizeof reply;
        status = llcl_am(rank->context, &am);
        CHECK(status != LLCL_OK || reply == round);
    }
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
    word_set(&rank->ended[2], (uint64_t)now_ns());
    return NULL;
}

/* When it was killed, by the clock that all processes share; told to the other survivor. */
static uint64_t killed;

static void heard(llcl_am_t *message, void *data)
{
    uint64_t at;
    memcpy(&at, am_header(message, NULL), sizeof at);
    word_set(data, at);
}

static void run(llcl_context_t *context)
{
    static void *(*const ways[3])(void *) = {by_try, by_async, by_call};
    struct rank *rank = am_new(sizeof *rank);
    uint64_t seed = kill_seed();
    uint32_t me = llcl_rank(context), i;
    int64_t gap = 0;
    pthread_t threads[3];
    llcl_stats_t stats;
    rank->context = context;
    if (me == 0) {
        am_register(context, SLOW, slow, rank);
        am_register(context, KEEP, keep, rank);
    }
    am_register(context, ECHO, me == 0 ? echo : heard, &killed);
    fence(context);
    if (me == 0) {
        llcl_wait_word(context, &rank->over, 1, 10 * SECOND);
        test_fail(__FILE__, __LINE__, "the receiver was not killed");
    }
    for (i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, ways[i], rank) == 0);
    if (me == 1) {
        llcl_am_params_t am = am_to(2, ECHO, &killed, sizeof killed);
        kill_peer(context, 0, now_ns() + (int64_t)(seed % 20000) * 1000);
        word_set(&killed, (uint64_t)now_ns());
        /* The survivors' own traffic goes on. */
        CHECK_OK(llcl_am(context, &am));
    }
    for (i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(llcl_wait_word(context, &killed, 1, KILL_PATIENCE));
    CHECK_OK(llcl_wait_word(context, &rank->fired, rank->posted, KILL_PATIENCE));
    CHECK_EQUAL(word_get(&rank->fired), rank->posted);
    if (rank->strange)
        CHECK_OK((llcl_status_t)rank->strange);
    for (i = 0; i < 3; i++)
        gap = (int64_t)(rank->ended[i] - killed) > gap ? (int64_t)(rank->ended[i] - killed) : gap;
    CHECK_STATUS(llcl_flush(context, 0), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_flush(context, 3 - me));
    stats = am_stats(context);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap %lld skips %llu\n", me, (long long)gap / 1000,
           (unsigned long long)stats.skips);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"am_kill_receiver", RANKS, 36, am_kill_set_up, run, 1};
    return kill_main(&plan, count, arguments);
}
