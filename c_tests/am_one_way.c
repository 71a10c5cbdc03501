/* Broken if this fails: one-way traffic stalls where no message ever goes the other way: far more
 * messages than slots, to a receiver whose threads compute, sleep outside of the library or wait.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 40
 */
#include "am.h"

#define MESSAGES 10000u
#define FAST_MESSAGES 4000u

static void configure(llcl_config_t *config)
{
    config->am_slots = 16;
}

static void handle(llcl_am_t *message, void *data)
{
    uint32_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    ledger_mark(data, am_source(message) - 1, number);
}

static void run(llcl_context_t *context)
{
    uint32_t senders = llcl_size(context) - 1, each = test_in_threads() ? FAST_MESSAGES : MESSAGES, i;
    struct ledger ledger;
    llcl_stats_t stats;
    each /= senders;
    ledger_make(&ledger, senders, each);
    if (llcl_rank(context) == 0)
        am_register(context, 0, handle, &ledger);
    fence(context);
    if (llcl_rank(context) == 0) {
        uint64_t all = (uint64_t)senders * each;
        /* Computes, sleeps, and waits in the library. */
        while (word_get(&ledger.total) < all / 3)
            ;
        CHECK(word_reaches(&ledger.total, all / 3 * 2, AM_PATIENCE_NS));
        ledger_await(context, &ledger, AM_PATIENCE_NS);
    } else {
        for (i = 0; i < each; i++) {
            llcl_am_params_t am = am_to(0, 0, &i, sizeof i);
            POST(llcl_try_am_async(context, &am));
        }
    }
    fence(context);
    stats = am_stats(context);
    if (llcl_rank(context) == 0) {
        CHECK(stats.am_sent == 0 && stats.am_replies == 0);
        CHECK_EQUAL(stats.am_handled, (uint64_t)senders * each);
    } else {
        /* What the library's thread has sent it counts a moment later. */
        int64_t end = now_ns() + TEST_PATIENCE_NS;
        while (stats.am_sent < each && now_ns() < end)
            stats = am_stats(context);
        CHECK_EQUAL(stats.am_sent, each);
        CHECK_EQUAL(stats.am_handled, 0);
    }
}

TEST_MAIN_CONFIG(run, configure)
