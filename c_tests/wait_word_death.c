/* Broken if this fails: a thread that sleeps in llcl_wait_word or llcl_wait_word_from without time
 * limit does not learn within a second that the ranks which could change its word have been killed
 * (the named one, all that have used the region, or all others); or a wait fails although a living
 * rank changes the word, or the value is there, or an operation of the own rank brings it. Or an
 * event loop by llcl_wait_fd does not learn of it, or is only woken again and again. Started alone
 * it drives the rounds: wait_word_death [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "kill.h"
#include <poll.h>

struct waiter {
    llcl_context_t *context;
    uint64_t *word;
    int64_t peer; /* negative: anybody */
    int any;      /* by llcl_wait_any */
    llcl_status_t expected;
    pthread_t thread;
    int64_t ended;
};

static void *wait_for_ever(void *data)
{
    struct waiter *waiter = data;
    llcl_awaited_t either[2];
    llcl_status_t status;
    uint32_t i;
    for (i = 0; i < 2; i++) {
        either[i].word = waiter->word;
        either[i].at_least = 1;
        either[i].peer = (uint32_t)waiter->peer;
        either[i].flags = waiter->peer < 0 ? 0 : LLCL_WAIT_FROM_PEER;
    }
    if (waiter->any)
        status = llcl_wait_any(waiter->context, either, 2, 0, -1, NULL);
    else
        status = waiter->peer < 0
        ? llcl_wait_word(waiter->context, waiter->word, 1, -1)
        : llcl_wait_word_from(waiter->context, waiter->word, 1, -1, (uint32_t)waiter->peer);
    CHECK_STATUS(status, waiter->expected);
    if (status != LLCL_OK)
        CHECK(strlen(llcl_last_error()) > 10);
    waiter->ended = now_ns();
    return NULL;
}

static void begin(struct waiter *waiter, llcl_context_t *context, uint64_t *word, int64_t peer,
                  llcl_status_t expected)
{
    struct waiter made = {0};
    static uint32_t begun;
    made.any = __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED) % 2 == 1;
    made.context = context;
    made.word = word;
    made.peer = peer;
    made.expected = expected;
    *waiter = made;
    CHECK(pthread_create(&waiter->thread, NULL, wait_for_ever, waiter) == 0);
}

static void end(struct waiter *waiter, int64_t death)
{
    CHECK(pthread_join(waiter->thread, NULL) == 0);
    CHECK(waiter->ended - death < SECOND);
}

static void write_one(llcl_context_t *context, uint32_t peer, llcl_remote_t to, uint32_t flags)
{
    llcl_write_value_params_t value = {0};
    uint64_t done = 0;
    value.peer = peer;
    value.flags = flags;
    value.destination = to;
    value.value = 1;
    value.size = 8;
    value.on_complete = llcl_store_on(&done);
    POST(llcl_try_write_value_async(context, &value));
    CHECK_OK(llcl_wait_word(context, &done, 1, -1));
}

static void wait_for_death(llcl_context_t *context, uint32_t victim)
{
    while (llcl_peer_alive(context, victim) == LLCL_OK)
        usleep(500);
}

static void die_after(int ms)
{
    sleep_ms(ms);
    kill(getpid(), SIGKILL);
}

/* Rank 2 has used `lonely` of the others, and dies; both others use `common`. */
static void three(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), victim = 2, other = 1 - me;
    struct shared lonely, common;
    struct waiter waiters[4];
    int64_t death;
    int i;
    share(context, ALLOCATED, 4096, &lonely);
    share(context, kill_seed() % 2 ? REGISTERED : ALLOCATED, 4096, &common);
    if (me == victim) {
        for (i = 0; i < 2; i++) {
            write_one(context, (uint32_t)i, remote_at(&lonely, (uint32_t)i, 0), 0);
            write_one(context, (uint32_t)i, remote_at(&common, (uint32_t)i, 0), 0);
        }
        fence(context);
        die_after(100);
    }
    write_one(context, other, remote_at(&common, other, 8), 0);
    fence(context);
    begin(&waiters[0], context, &lonely.words[5], -1, LLCL_ERR_PEER_DEAD);
    begin(&waiters[1], context, &common.words[6], victim, LLCL_ERR_PEER_DEAD);
    begin(&waiters[2], context, &common.words[7], -1, LLCL_OK);
    begin(&waiters[3], context, &common.words[8], other, LLCL_OK);
    wait_for_death(context, victim);
    death = now_ns();
    sleep_ms(100);
    write_one(context, other, remote_at(&common, other, 8 * 7), 0);
    write_one(context, other, remote_at(&common, other, 8 * 8), 0);
    for (i = 0; i < 4; i++)
        end(&waiters[i], death);
    CHECK_OK(llcl_wait_word(context, lonely.words, 1, -1));
    CHECK_OK(llcl_wait_word_from(context, lonely.words, 1, -1, victim));
    CHECK_STATUS(llcl_wait_word_from(context, lonely.words, 2, -1, victim), LLCL_ERR_PEER_DEAD);
}

/* The event loop that the header describes: arms, waits, looks. */
static void by_descriptor(llcl_context_t *context, uint64_t *word, uint32_t peer)
{
    int64_t limit = now_ns() + TEST_PATIENCE_NS;
    llcl_awaited_t it = LLCL_AWAITED_INIT;
    llcl_status_t status;
    struct pollfd ready;
    it.word = word;
    it.at_least = 1;
    it.peer = peer;
    it.flags = LLCL_WAIT_FROM_PEER;
    ready.events = POLLIN;
    do {
        CHECK(now_ns() < limit);
        CHECK_OK(llcl_wait_fd(context, &it, 1, 0, &ready.fd));
        CHECK(poll(&ready, 1, (int)(TEST_PATIENCE_NS / 1000000)) == 1);
        status = llcl_wait_any(context, &it, 1, 0, 0, NULL);
    } while (status == LLCL_ERR_TIMEOUT);
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
}

/* Rank 1 dies before it has used anything. */
static void two(llcl_context_t *context)
{
    struct shared target;
    struct waiter waiters[3];
    uint64_t private_word = 0;
    int64_t death;
    int i;
    share(context, ALLOCATED, 4096, &target);
    if (llcl_rank(context) == 1)
        die_after(100);
    begin(&waiters[0], context, target.words, -1, LLCL_ERR_PEER_DEAD);
    begin(&waiters[1], context, &private_word, -1, LLCL_ERR_PEER_DEAD);
    begin(&waiters[2], context, &private_word, 1, LLCL_ERR_PEER_DEAD);
    wait_for_death(context, 1);
    death = now_ns();
    for (i = 0; i < 3; i++)
        end(&waiters[i], death);
    by_descriptor(context, &private_word, 1);
    for (i = 0; i < 100; i++)
        write_one(context, 0, remote_at(&target, 0, 8), i % 2 ? LLCL_FLAG_DEFER : 0);
    CHECK_STATUS(llcl_wait_word_from(context, target.words, 1, 1000000, 0), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_word_from(context, target.words, 1, -1, 2), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_word_from(NULL, target.words, 1, -1, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_word_from(context, NULL, 1, -1, 0), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context);
    if (llcl_size(context) == 3)
        three(context);
    else
        two(context);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap 0\n", me);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static const struct kill_plan of_three = {"of three ranks", 3, 6, kill_modes_in_turn, run, 0};
    static const struct kill_plan of_two = {"of two ranks", 2, 3, kill_modes_in_turn, run, 0};
    int bad = getenv("LLCL_RANK") ? 0 : kill_main(&of_three, count, arguments);
    return bad | kill_main(&of_two, count, arguments);
}
