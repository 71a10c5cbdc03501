/* Broken if this fails: while a message waits for a slot of its receiver, parked, in the lane or,
 * between nodes, in a blocking call, a thread of its rank looks again and again; or that thread
 * sleeps on when the receiver has slots again. On a busy machine some of the rounds may be late.
 * ranks: 2
 * modes: auto direct
 */
#include "am.h"

#include <pthread.h>
#include <sys/resource.h>

#define ROUNDS 12u
#define QUIET_MS 300
#define MOST_SWITCHES 60 /* of that time; a thread that naps has 140 to 2,000 */

/* In memory of each rank, written by the other one. */
enum { SENT, TAKEN, WORDS };

/* How a message waits that finds no slot. */
static const char *const WAYS[] = {"parked", "in the lane", "in a blocking call", "in a call with a time-out"};
enum { PARKED, DEFERRED, BLOCKED, LIMITED, ALL_WAYS };

struct rank {
    llcl_context_t *context;
    llcl_am_params_t last;
    uint64_t header;
    struct shared words;
    uint32_t peer;
    uint64_t taken;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 4;
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void take(llcl_am_t *message, void *data)
{
    (void)message;
    ((struct rank *)data)->taken++;
}

static void tell(const struct rank *rank, int word, uint64_t value)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    write.peer = rank->peer;
    write.destination = remote_at(&rank->words, rank->peer, 8 * (size_t)word);
    write.value = value;
    write.size = sizeof value;
    CHECK_OK(llcl_write_value(rank->context, &write));
}

/* Without a call of the library, so that no thread of the program does its work. */
static void hear(const struct rank *rank, int word, uint64_t at_least)
{
    int64_t limit = now_ns() + TEST_PATIENCE_NS;
    while (word_get(&rank->words.words[word]) < at_least) {
        CHECK(now_ns() < limit);
        usleep(200);
    }
}

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

static void *send_last(void *data)
{
    struct rank *rank = data;
    CHECK_OK(llcl_am_async(rank->context, &rank->last));
    return NULL;
}

static void *send_within(void *data)
{
    struct rank *rank = data;
    CHECK_OK(llcl_am_within(rank->context, &rank->last, TEST_PATIENCE_NS));
    return NULL;
}

/* Fills the peer's slots and sends one more; how many that were. */
static uint64_t fill(struct rank *rank, int way, pthread_t *thread)
{
    uint64_t count = 0;
    llcl_am_params_t *am = &rank->last;
    llcl_status_t status;
    *am = am_to(rank->peer, 0, &rank->header, sizeof rank->header);
    while ((status = llcl_try_am_async(rank->context, am)) != LLCL_RETRY_NO_CREDIT) {
        CHECK(status == LLCL_OK || status == LLCL_RETRY_BUSY || status == LLCL_RETRY_CONNECTING);
        count += status == LLCL_OK;
        CHECK(count <= 256);
        /* Until what a wire brings has come. */
        if (count % 8 == 0)
            usleep(1000);
    }
    if (way >= BLOCKED) {
        CHECK(pthread_create(thread, NULL, way == BLOCKED ? send_last : send_within, rank) == 0);
    } else {
        am->flags = way == PARKED ? LLCL_FLAG_PARK : LLCL_FLAG_DEFER;
        CHECK_OK(llcl_try_am_async(rank->context, am));
    }
    return count + 1;
}

static uint64_t send_all(struct rank *rank, int way, uint64_t all, uint64_t round)
{
    int64_t told, took;
    uint32_t i, soon = 0, sooner = 0;
    for (i = 1; i <= ROUNDS; i++) {
        pthread_t thread;
        all += fill(rank, way, &thread);
        if (i == 1) {
            long before;
            sleep_ms(50);
            before = switches();
            sleep_ms(QUIET_MS);
            before = switches() - before;
            printf("%ld switches while a message was %s\n", before, WAYS[way]);
            CHECK(before <= MOST_SWITCHES);
        }
        /* Until the thread sleeps again. */
        sleep_ms(20);
        told = now_ns();
        tell(rank, SENT, all);
        hear(rank, TAKEN, ++round);
        if (way >= BLOCKED)
            CHECK(pthread_join(thread, NULL) == 0);
        took = now_ns() - told;
        soon += took < INT64_C(500000000);
        sooner += took < INT64_C(20000000);
    }
    printf("of %u rounds %u took less than 500 ms, and %u less than 20 ms\n", ROUNDS, soon, sooner);
    /* A thread that nobody rings for sleeps for a second, in a call that blocks for 50 ms. */
    CHECK(soon > ROUNDS / 2);
    CHECK(way < BLOCKED || sooner >= ROUNDS / 2);
    return all;
}

/* Nothing comes after the message that waits that would have slots given back for it. The fence
 * before may have taken some messages of the first round. */
static void take_all(struct rank *rank, uint32_t ways)
{
    uint64_t sent = 0;
    uint32_t i;
    for (i = 1; i <= ways * ROUNDS; i++) {
        hear(rank, SENT, sent + 1);
        sent = word_get(&rank->words.words[SENT]);
        while (rank->taken < sent) {
            CHECK_OK(llcl_am_poll(rank->context, 64, NULL));
            usleep(20);
        }
        tell(rank, TAKEN, i);
    }
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    uint64_t all = 0;
    int way, ways;
    rank->context = context;
    rank->peer = 1 - llcl_rank(context);
    share(context, ALLOCATED, 8 * WORDS, &rank->words);
    memset(rank->words.words, 0, 8 * WORDS);
    am_register(context, 0, take, rank);
    fence(context);
    CHECK_OK(llcl_query_peer(context, rank->peer, &info));
    /* On a node the thread of a blocking call polls, since with polled handlers it must. */
    ways = info.transport != LLCL_TRANSPORT_WIRE ? BLOCKED : ALL_WAYS;
    if (llcl_rank(context) == 0)
        for (way = 0; way < ways; way++)
            all = send_all(rank, way, all, (uint64_t)way * ROUNDS);
    else
        take_all(rank, (uint32_t)ways);
    fence(context);
    CHECK_EQUAL(am_stats(context).parked, llcl_rank(context) == 0 ? ROUNDS : 0);
    share_end(context, &rank->words);
}

TEST_MAIN_CONFIG(run, configure)
