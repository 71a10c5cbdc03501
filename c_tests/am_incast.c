/* Broken if this fails: of messages that many ranks send to one at the same time, which has few
 * slots, one is lost, doubled or mixed up.
 * ranks: 65 4
 * policies: acquire limit distributed
 * threads: 17
 * timeout: 60
 */
#include "am.h"

#define SLOTS 16
#define MEDIUM 256
#define ALL_MESSAGES 19200u /* of all senders together */
#define FAST_MESSAGES 6400u

struct rank {
    struct ledger ledger;
    uint32_t in_handler;
};

static uint32_t messages(const llcl_context_t *context)
{
    return (test_in_threads() ? FAST_MESSAGES : ALL_MESSAGES) / (llcl_size(context) - 1);
}

static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
    config->am_medium = MEDIUM;
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint32_t head[2];
    size_t header = 0, payload = 0;
    const void *bytes = am_header(message, &header), *body = am_payload(message, &payload);
    /* Serial: one at a time. */
    CHECK_EQUAL(__atomic_exchange_n(&rank->in_handler, 1, __ATOMIC_ACQ_REL), 0);
    CHECK_EQUAL(header, sizeof head);
    memcpy(head, bytes, sizeof head);
    CHECK_EQUAL(head[0], am_source(message));
    CHECK_EQUAL(payload, head[1] % (MEDIUM + 1));
    CHECK(pattern_holds(body, payload, head[0] + head[1]));
    ledger_mark(&rank->ledger, head[0] - 1, head[1]);
    CHECK_EQUAL(__atomic_exchange_n(&rank->in_handler, 0, __ATOMIC_ACQ_REL), 1);
}

static void send_all(llcl_context_t *context, uint32_t count)
{
    unsigned char body[MEDIUM];
    uint32_t me = llcl_rank(context), i;
    for (i = 0; i < count; i++) {
        uint32_t head[2];
        uint64_t local = 0;
        llcl_am_params_t am = am_to(0, 3, head, sizeof head);
        head[0] = me;
        head[1] = i;
        am.payload_size = i % (MEDIUM + 1);
        am.payload = am.payload_size ? body : NULL;
        pattern_fill(body, am.payload_size, me + i);
        /* The tries of a user who yields, or the library's own way to wait. */
        if (test_mode_is("offload"))
            am.on_local = llcl_store_on(&local);
        if (me % 2)
            POST(llcl_try_am_async(context, &am));
        else
            CHECK_OK(llcl_am_async(context, &am));
        if (test_mode_is("offload"))
            AM_AWAIT(context, &local, 1);
    }
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t senders = llcl_size(context) - 1, count = messages(context);
    if (llcl_rank(context) == 0) {
        ledger_make(&rank->ledger, senders, count);
        am_register(context, 3, handle, rank);
        fence(context);
        ledger_await(context, &rank->ledger, AM_PATIENCE_NS);
    } else {
        fence(context);
        send_all(context, count);
    }
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_stats_t stats = am_stats(context);
        CHECK_EQUAL(word_get(&rank->ledger.total), (uint64_t)senders * count);
        CHECK_EQUAL(stats.am_handled, (uint64_t)senders * count);
        CHECK_EQUAL(stats.am_unknown, 0);
        CHECK(stats.slots_high_water >= 1 && stats.slots_high_water <= SLOTS);
        printf("skips %llu, slots at most %llu of %d\n", (unsigned long long)stats.skips,
               (unsigned long long)stats.slots_high_water, SLOTS);
    }
}

TEST_MAIN_CONFIG(run, configure)
