/* Broken if this fails: a field of llcl_stats_get does not count what its comment says.
 * ranks: 2
 * policies: acquire limit distributed
 * threads: yes
 * wire: no (counts what senders on a node do to slots)
 */
#include "am.h"

#define MESSAGES 400u
#define SLOTS 8u
#define REQUESTS 64u

enum { COUNT, ANSWER, HOLD };

struct rank {
    uint64_t count;
    uint64_t gate; /* HOLD returns when it is open */
};

static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
    config->am_requests = REQUESTS;
    config->am_shares = 2;
}

static void count(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct rank *)data)->count, 1);
}

static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    int64_t end = now_ns() + 5000000000;
    (void)message;
    while (!word_get(&rank->gate) && now_ns() < end)
        usleep(100);
    word_add(&rank->count, 1);
}

static uint64_t updates(const llcl_stats_t *stats)
{
    uint64_t sum = 0;
    unsigned i;
    for (i = 0; i < LLCL_AM_SHARES; i++)
        sum += stats->credit_updates[i];
    return sum;
}

/* All slots of rank 1 and all requests of rank 0 are in use: both refuse, and both are counted. */
static void exhaust(llcl_context_t *context)
{
    llcl_am_params_t am = am_to(1, HOLD, NULL, 0);
    llcl_stats_t before = am_stats(context), after;
    uint64_t done = 0, accepted = 0, no_credit = 0, queue_full = 0, i;
    llcl_status_t status;
    am.on_complete = llcl_add_on(&done);
    for (i = 0; i < 1000; i++) {
        status = llcl_try_am_async(context, &am);
        CHECK(status >= 0 && status != LLCL_RETRY_BUSY);
        accepted += status == LLCL_OK;
        no_credit += status == LLCL_RETRY_NO_CREDIT;
        queue_full += status == LLCL_RETRY_QUEUE_FULL;
        usleep(20);
    }
    after = am_stats(context);
    CHECK_EQUAL(after.retry_no_credit - before.retry_no_credit, no_credit);
    CHECK_EQUAL(after.retry_queue_full - before.retry_queue_full, queue_full);
    CHECK_EQUAL(after.retry_no_tag - before.retry_no_tag, 1000 - accepted - no_credit - queue_full);
    printf("accepted %llu, no credit %llu, queue full %llu\n", (unsigned long long)accepted,
           (unsigned long long)no_credit, (unsigned long long)queue_full);
    /* Slots are given back a few at a time, so some may be owed while the handler holds; in offload
     * mode the lane keeps what has no slot. */
    if (test_mode_is("offload")) {
        CHECK_EQUAL(accepted, REQUESTS);
        CHECK_EQUAL(after.requests_high_water, REQUESTS);
        CHECK(after.retry_no_tag > before.retry_no_tag);
    } else {
        CHECK(accepted >= SLOTS - SLOTS / 4 && accepted <= SLOTS);
        /* A try that finds no credit has had a place for its reply for a moment. */
        CHECK(after.requests_high_water >= accepted && after.requests_high_water <= accepted + 1);
        CHECK(no_credit > 0);
        CHECK(after.credit_reads > before.credit_reads);
    }
    fence(context); /* rank 1 opens the gate */
    AM_AWAIT(context, &done, accepted);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), i;
    llcl_stats_t stats;
    uint64_t memory;
    stats = am_stats(context);
    CHECK_EQUAL(stats.struct_size, sizeof stats);
    CHECK(stats.am_sent == 0 && stats.am_handled == 0 && stats.am_unknown == 0 && stats.am_replies == 0);
    CHECK(stats.retry_no_credit == 0 && stats.retry_no_tag == 0 && stats.retry_busy == 0);
    CHECK(stats.skips == 0 && stats.slots_high_water == 0 && stats.requests_high_water == 0);
    CHECK_EQUAL(updates(&stats), 0);
    memory = stats.am_memory;
    /* Slots, as many for responses, and places for replies, each with a payload of am_medium at
     * most and some words; and LLCL_AM_CHUNKS for larger ones, twice. */
    CHECK(memory >= (uint64_t)(2 * SLOTS + REQUESTS) * 4096);
    CHECK(memory <= (uint64_t)(2 * SLOTS + REQUESTS) * (4096 + 512) + 2 * 32 * (65536 + 512) + 65536);
    am_register(context, COUNT, count, rank);
    am_register(context, ANSWER, count, rank);
    am_register(context, HOLD, hold, rank);
    fence(context);
    for (i = 0; i < MESSAGES && me == 0; i++) {
        llcl_am_params_t am = am_to(1, i % 2 ? COUNT : ANSWER, NULL, 0);
        if (i % 2)
            CHECK_OK(llcl_am_async(context, &am));
        else
            CHECK_OK(llcl_am(context, &am));
    }
    if (me == 1)
        AM_AWAIT(context, &rank->count, MESSAGES);
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    stats = am_stats(context);
    CHECK_EQUAL(stats.am_sent, me == 0 ? MESSAGES : 0);
    CHECK_EQUAL(stats.am_handled, me == 1 ? MESSAGES : 0);
    CHECK_EQUAL(stats.am_replies, me == 1 ? MESSAGES / 2 : 0);
    CHECK(me == 1 || updates(&stats) >= MESSAGES);
    CHECK(me == 1 ? stats.slots_high_water <= SLOTS : stats.slots_high_water == 0);
    CHECK(me == 1 ? stats.requests_high_water == 0 : stats.requests_high_water >= 1);
    fence(context);
    if (me == 0) {
        exhaust(context);
    } else {
        fence(context);
        word_set(&rank->gate, 1);
    }
    fence(context);
    stats = am_stats(context);
    CHECK(me == 0 || stats.slots_high_water >= SLOTS / 4); /* of two shares, perhaps unevenly */
    CHECK(stats.slots_high_water <= SLOTS);
    CHECK_EQUAL(stats.am_memory, memory);
    CHECK_EQUAL(stats.am_unknown, 0);
    /* The receiver skips a slot, and corrects the count of the policy limit, if a sender stands
     * still between two steps for 2 ms; a busy machine can stop a sender now and then. */
    CHECK(stats.skips <= MESSAGES / 20);
}

TEST_MAIN_CONFIG(run, configure)
