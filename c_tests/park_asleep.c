/* Broken if this fails: while a message with LLCL_FLAG_PARK waits for a slot of its receiver, the
 * library's thread looks again and again; or it sleeps on when the receiver has slots again.
 * ranks: 2
 * modes: auto direct
 */
#include "am.h"

#include <sys/resource.h>

#define ROUNDS 12u
#define QUIET_MS 300
#define MOST_SWITCHES 100 /* of that time; a thread that naps has more than a thousand */

/* In memory of each rank, written by the other one. */
enum { SENT, TAKEN, WORDS };

struct rank {
    llcl_context_t *context;
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

/* Fills the peer's slots and parks one more; how many that were. */
static uint64_t fill(const struct rank *rank)
{
    uint64_t count = 0, header = 0;
    llcl_am_params_t am = am_to(rank->peer, 0, &header, sizeof header);
    llcl_status_t status;
    while ((status = llcl_try_am_async(rank->context, &am)) != LLCL_RETRY_NO_CREDIT) {
        CHECK(status == LLCL_OK || status == LLCL_RETRY_BUSY || status == LLCL_RETRY_CONNECTING);
        count += status == LLCL_OK;
        CHECK(count <= 64);
    }
    am.flags = LLCL_FLAG_PARK;
    CHECK_OK(llcl_try_am_async(rank->context, &am));
    return count + 1;
}

static void send_all(struct rank *rank)
{
    uint64_t all = 0;
    int64_t since = 0, took;
    uint32_t i;
    for (i = 1; i <= ROUNDS; i++) {
        all += fill(rank);
        if (i == 1) {
            long before;
            sleep_ms(50);
            before = switches();
            sleep_ms(QUIET_MS);
            before = switches() - before;
            printf("%ld switches while a message was parked\n", before);
            CHECK(before <= MOST_SWITCHES);
            since = now_ns();
        }
        /* Until the thread sleeps again. */
        sleep_ms(20);
        tell(rank, SENT, all);
        hear(rank, TAKEN, i);
    }
    took = now_ns() - since;
    printf("%u rounds took %lld us\n", ROUNDS, (long long)took / 1000);
    /* A thread that nobody rings for sleeps for a second. */
    CHECK(took < (ROUNDS - 2) * INT64_C(1000000000) / 2);
}

/* Nothing comes after the parked message that would have slots given back for it. The fence before
 * may have taken some messages of the first round. */
static void take_all(struct rank *rank)
{
    uint64_t sent = 0;
    uint32_t i;
    for (i = 1; i <= ROUNDS; i++) {
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
    rank->context = context;
    rank->peer = 1 - llcl_rank(context);
    share(context, ALLOCATED, 8 * WORDS, &rank->words);
    memset(rank->words.words, 0, 8 * WORDS);
    am_register(context, 0, take, rank);
    fence(context);
    if (llcl_rank(context) == 0)
        send_all(rank);
    else
        take_all(rank);
    fence(context);
    CHECK_EQUAL(am_stats(context).parked, llcl_rank(context) == 0 ? ROUNDS : 0);
    share_end(context, &rank->words);
}

TEST_MAIN_CONFIG(run, configure)
