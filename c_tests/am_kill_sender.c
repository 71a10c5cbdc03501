/* Broken if this fails: when one of three ranks that flood a fourth with messages is killed (kill
 * -9) in the middle, the others wait for more than a second, lose or double a message, or hang; or
 * what is pending on the dead rank does not end with LLCL_ERR_PEER_DEAD. Rounds at random moments,
 * over modes, policies and 1 to 64 slots.
 * kind: alone
 * modes: auto
 * timeout: 150
 */
#include "am_kill.h"

#define RANKS 4
#define MOST 400000u
#define AFTER 300u   /* messages that each survivor sends once it knows of the death */
#define PENDING 32
#define VICTIM_THREADS 4

enum { FLOOD, TOTAL, ASK };

struct rank {
    llcl_context_t *context;
    struct ledger ledger;
    uint64_t totals, promised; /* survivors that are through; messages that they have sent */
    uint64_t posted, fired, dead, strange;
    llcl_am_t *kept[PENDING + 1];
    uint32_t kept_count;
};

static void flooded(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint32_t number;
    size_t size = 0;
    memcpy(&number, am_header(message, NULL), sizeof number);
    CHECK(pattern_holds(am_payload(message, &size), size < 64 ? size : 64, number));
    ledger_mark(&rank->ledger, am_source(message) - 1, number);
}

static void total(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint32_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    word_add(&rank->promised, number);
    word_add(&rank->totals, 1);
}

/* The victim answers some, and keeps others for ever. */
static void ask(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    if (rank->kept_count < PENDING)
        rank->kept[rank->kept_count++] = llcl_am_retain(message);
}

static void fire(void *data, llcl_status_t status)
{
    struct rank *rank = data;
    if (status == LLCL_ERR_PEER_DEAD)
        word_add(&rank->dead, 1);
    else if (status != LLCL_OK)
        __atomic_store_n(&rank->strange, (uint64_t)(int64_t)status, __ATOMIC_RELAXED);
    word_add(&rank->fired, 1);
}

/* A request to the victim now and then; whether the victim is known to be dead. */
static int ask_victim(struct rank *rank, uint32_t victim)
{
    llcl_am_params_t am = am_to(victim, ASK, NULL, 0);
    llcl_status_t status;
    if (rank->posted - word_get(&rank->fired) >= PENDING)
        return llcl_peer_alive(rank->context, victim) == LLCL_ERR_PEER_DEAD;
    am.on_complete = llcl_callback(fire, rank);
    status = llcl_try_am_async(rank->context, &am);
    if (status == LLCL_OK)
        rank->posted++;
    CHECK(status >= 0 || status == LLCL_ERR_PEER_DEAD);
    return status == LLCL_ERR_PEER_DEAD;
}

/* The victim: several threads write as large payloads as there are, so that it often dies while it
 * has a slot and has not filled it. */
static void *flood_till_death(void *data)
{
    struct rank *rank = data;
    size_t large = am_limits(rank->context).am_medium;
    unsigned char *payload = calloc(1, large);
    test_rank = llcl_rank(rank->context);
    CHECK(payload != NULL);
    for (;;) {
        uint32_t number = (uint32_t)word_add(&rank->posted, 1);
        llcl_am_params_t am = am_to(0, FLOOD, &number, sizeof number);
        uint64_t local = 0;
        if (number >= MOST)
            break;
        am.payload_size = large;
        am.payload = payload;
        pattern_fill(payload, 64, number);
        am.on_local = llcl_store_on(&local);
        CHECK_OK(llcl_am_async(rank->context, &am));
        CHECK_OK(llcl_wait_word(rank->context, &local, 1, 5 * SECOND));
    }
    return NULL;
}

static void die(struct rank *rank)
{
    pthread_t threads[VICTIM_THREADS];
    int i;
    for (i = 0; i < VICTIM_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, flood_till_death, rank) == 0);
    sleep_ms(8000);
    test_fail(__FILE__, __LINE__, "the victim was not killed");
}

static uint32_t flood(struct rank *rank, uint32_t victim, int64_t *largest_gap)
{
    static unsigned char payload[65536];
    size_t large = am_limits(rank->context).am_medium;
    uint32_t number = 0, left = UINT32_MAX;
    int64_t last = now_ns(), end = now_ns() + 8 * SECOND, now;
    while (number < MOST && left > 0) {
        llcl_am_params_t am = am_to(0, FLOOD, &number, sizeof number);
        uint64_t local = 0;
        am.payload_size = number % 16 == 0 ? large : 64;
        am.payload = payload;
        pattern_fill(payload, 64, number);
        if (test_mode_is("offload"))
            am.on_local = llcl_store_on(&local);
        CHECK_OK(llcl_am_async(rank->context, &am));
        if (test_mode_is("offload"))
            CHECK_OK(llcl_wait_word(rank->context, &local, 1, 5 * SECOND));
        number++;
        /* Every other round leaves most credits to the victim. */
        if (kill_seed() % 2 && left == UINT32_MAX)
            usleep(100);
        left -= left != UINT32_MAX;
        now = now_ns();
        *largest_gap = now - last > *largest_gap ? now - last : *largest_gap;
        last = now;
        if (left == UINT32_MAX && number % 8 == 0 && ask_victim(rank, victim))
            left = AFTER;
        if (left == UINT32_MAX && now > end)
            test_fail(__FILE__, __LINE__, "no death was told");
    }
    /* More than there are marks for: goes on without a flood until the end of the other. */
    while (left == UINT32_MAX && !ask_victim(rank, victim))
        usleep(100);
    return number;
}

static void survive(struct rank *rank, uint32_t victim, uint32_t sent)
{
    llcl_am_params_t am = am_to(0, TOTAL, &sent, sizeof sent);
    llcl_am_params_t late = am_to(victim, ASK, NULL, 0);
    CHECK_OK(llcl_am(rank->context, &am));
    CHECK_OK(llcl_wait_word(rank->context, &rank->fired, rank->posted, SECOND));
    CHECK_EQUAL(word_get(&rank->fired), rank->posted);
    if (rank->strange)
        CHECK_OK((llcl_status_t)rank->strange);
    CHECK_STATUS(llcl_am(rank->context, &late), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_am_async(rank->context, &late), LLCL_ERR_PEER_DEAD);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint64_t seed = kill_seed();
    uint32_t me = llcl_rank(context), victim = 1 + (uint32_t)(seed % 3);
    int64_t gap = 0;
    llcl_stats_t stats;
    rank->context = context;
    if (me == 0) {
        ledger_make(&rank->ledger, RANKS - 1, MOST);
        am_register(context, FLOOD, flooded, rank);
        am_register(context, TOTAL, total, rank);
    } else {
        am_register(context, ASK, ask, rank);
    }
    fence(context);
    if (me == 0) {
        uint64_t of_victim, i;
        kill_peer(context, victim, now_ns() + (int64_t)(seed / 3 % 20000) * 1000);
        CHECK_OK(llcl_wait_word(context, &rank->totals, RANKS - 2, 8 * SECOND));
        /* What the survivors have sent has all come; the victim's part can only be bounded. */
        while (word_get(&rank->ledger.total) < word_get(&rank->promised))
            CHECK_STATUS(llcl_wait_word(context, &rank->ledger.total, word_get(&rank->promised), SECOND),
                         LLCL_OK);
        sleep_ms(5);
        of_victim = 0;
        for (i = (uint64_t)(victim - 1) * MOST; i < (uint64_t)victim * MOST; i++)
            of_victim += word_get(&rank->ledger.bits[i / 64]) >> i % 64 & 1;
        CHECK_EQUAL(word_get(&rank->ledger.total) - of_victim, word_get(&rank->promised));
    } else if (me == victim) {
        die(rank);
    } else {
        survive(rank, victim, flood(rank, victim, &gap));
    }
    CHECK_STATUS(llcl_peer_alive(context, victim), LLCL_ERR_PEER_DEAD);
    stats = am_stats(context);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap %lld skips %llu\n", me, (long long)gap / 1000,
           (unsigned long long)stats.skips);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"am_kill_sender", RANKS, 54, am_kill_set_up, run, 1};
    return kill_main(&plan, count, arguments);
}
