/* Broken if this fails: a receiver whose handler is slow does not slow its senders down by a "try
 * again" that names the reason, so that the memory of a rank grows; or an accepted message is lost.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * wire: no (bounds what is accepted by the slots of the receiver)
 */
#include "am.h"

#define SLOTS 16u
#define QUEUE 64u
#define KEPT 256u /* commands that wait for credit outside of the queue */
#define SPELL_NS INT64_C(300000000)

static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
    config->queue_entries = QUEUE;
    config->am_requests = 64;
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    sleep_ms(2);
    word_add(data, 1);
}

static uint64_t push(llcl_context_t *context)
{
    int64_t end = now_ns() + SPELL_NS;
    uint64_t accepted = 0, no_credit = 0, queue_full = 0, busy = 0;
    long before = resident_kib(), grown;
    llcl_stats_t stats;
    static unsigned char payload[4000]; /* of what stays in the queue, too */
    while (now_ns() < end) {
        llcl_am_params_t am = am_to(0, 0, &accepted, sizeof accepted);
        llcl_status_t status;
        am.payload = payload;
        am.payload_size = sizeof payload;
        status = llcl_try_am_async(context, &am);
        accepted += status == LLCL_OK;
        no_credit += status == LLCL_RETRY_NO_CREDIT;
        queue_full += status == LLCL_RETRY_QUEUE_FULL;
        busy += status == LLCL_RETRY_BUSY;
        CHECK(status >= 0 && status != LLCL_RETRY_NO_TAG);
        if (status > 0)
            usleep(50);
    }
    stats = am_stats(context);
    grown = resident_kib() - before;
    printf("accepted %llu, no credit %llu, queue full %llu, busy %llu, grown %ld KiB\n",
           (unsigned long long)accepted, (unsigned long long)no_credit,
           (unsigned long long)queue_full, (unsigned long long)busy, grown);
    if (test_mode_is("offload"))
        CHECK(no_credit + queue_full > 100);
    else
        CHECK(no_credit > 100 && queue_full == 0);
    CHECK_EQUAL(stats.retry_no_credit, no_credit);
    CHECK_EQUAL(stats.retry_queue_full, queue_full);
    CHECK_EQUAL(stats.retry_busy, busy);
    /* A handler takes 2 ms: the others are in a slot, or in the queue and what the lane keeps of
     * it. */
    CHECK(accepted <= SPELL_NS / 2000000 + 8 + SLOTS + (test_mode_is("offload") ? QUEUE + KEPT : 0));
    CHECK(grown < 2048 || test_in_threads());
    return accepted;
}

static void run(llcl_context_t *context)
{
    uint64_t handled = 0, accepted = 0, all[3], i;
    if (llcl_rank(context) == 0)
        am_register(context, 0, handle, &handled);
    fence(context);
    if (llcl_rank(context) != 0)
        accepted = push(context);
    else
        sleep_ms(100); /* outside of the library for a while */
    if (llcl_rank(context) == 0)
        llcl_wait_word(context, &handled, UINT64_MAX, SPELL_NS);
    CHECK_OK(llcl_allgather_bytes(context, &accepted, sizeof accepted, all));
    for (accepted = 0, i = 1; i < llcl_size(context); i++)
        accepted += all[i];
    if (llcl_rank(context) == 0) {
        AM_AWAIT(context, &handled, accepted);
        CHECK_EQUAL(word_get(&handled), accepted);
        CHECK(am_stats(context).slots_high_water <= SLOTS);
    }
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
