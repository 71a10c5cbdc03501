/* Broken if this fails: a request with LLCL_FLAG_PARK is answered by "try again" while the library
 * may keep it; is lost, done twice or out of its peer's order; its completion does not fire; a
 * flush does not wait for it; or it is kept without bound.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "am.h"
#include "wild.h"

#define MANY 200u
#define KEPT 1024u /* LLCL_PARKED */
#define TAKEN 1048u /* LLCL_IN_FLIGHT, queue_entries and am_slots: what the progress thread may have taken besides */

static void configure(llcl_config_t *config)
{
    config->queue_entries = 8;
    config->am_slots = 16;
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

/* A callback posts more than may wait in its thread, of every kind of operation. */
struct burst {
    llcl_context_t *context;
    struct wild wild;
    uint64_t *results;
    uint64_t done, posted, failed;
};

static void ended(void *data, llcl_status_t status)
{
    struct burst *burst = data;
    if (status == LLCL_ERR_RANGE)
        word_add(&burst->failed, 1);
    else
        CHECK_OK(status);
    word_add(&burst->done, 1);
}

static void post_many(void *data, llcl_status_t status)
{
    struct burst *burst = data;
    uint32_t i, flags = burst->wild.flags;
    CHECK_OK(status);
    burst->wild.on_complete = llcl_callback(ended, burst);
    for (i = 0; i < MANY; i++) {
        burst->wild.operation = i % WILD_OPERATIONS;
        /* Different threads may do them: each has a result of its own. */
        burst->wild.memory = burst->results + i;
        /* What is kept is told by its completion, whatever it asks for. */
        burst->wild.flags = i % 2 ? flags | LLCL_FLAG_DONE : flags;
        status = wild_post(burst->context, &burst->wild);
        if (status == LLCL_DONE)
            word_add(&burst->done, 1);
        else
            CHECK_OK(status);
    }
    /* What is wrong is told now, or by the completion of what was kept. */
    burst->wild.operation = WILD_WRITE;
    burst->wild.remote.offset = 1 << 20;
    status = wild_post(burst->context, &burst->wild);
    if (status != LLCL_OK)
        ended(burst, status);
    word_set(&burst->posted, 1);
}

static void from_a_callback(llcl_context_t *context, int kind, uint32_t flags)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    struct shared target, mine;
    struct burst burst;
    llcl_fetch_add_params_t first = LLCL_FETCH_ADD_PARAMS_INIT;
    memset(&burst, 0, sizeof burst);
    share(context, kind, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    burst.context = context;
    burst.wild.tier = TIER_TRY;
    burst.wild.peer = peer;
    burst.wild.flags = LLCL_FLAG_PARK | flags;
    burst.wild.local = llcl_region_local(mine.region, 0);
    burst.wild.memory = burst.results = mine.words + 8;
    burst.wild.remote = remote_at(&target, peer, 0);
    burst.wild.signal = remote_at(&target, peer, 64);
    first.peer = peer;
    first.target = remote_at(&target, peer, 128);
    first.on_complete = llcl_callback(post_many, &burst);
    POST(llcl_try_fetch_add_async(context, &first));
    CHECK_OK(llcl_wait_word(context, &burst.posted, 1, TEST_PATIENCE_NS));
    CHECK_OK(llcl_flush(context, peer));
    CHECK_EQUAL(word_get(&burst.done), MANY + 1);
    CHECK_EQUAL(word_get(&burst.failed), 1);
    share_end(context, &target);
    region_drop(&mine);
}

/* Messages to a rank that handles none for now. */
struct inbox {
    uint64_t next, sum;
};

static void take(llcl_am_t *message, void *data)
{
    struct inbox *inbox = data;
    uint64_t number, payload;
    size_t size;
    memcpy(&number, am_header(message, &size), sizeof number);
    memcpy(&payload, am_payload(message, &size), sizeof payload);
    CHECK_EQUAL(number, payload);
    inbox->sum += number;
    inbox->next++;
}

static void messages(llcl_context_t *context)
{
    static __thread uint64_t numbers[4 * KEPT];
    struct inbox *inbox = am_new(sizeof *inbox);
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    uint64_t accepted = 0, header, handled = 0, counts[2], all[4];
    llcl_am_params_t am = am_to(peer, 1, &header, sizeof header);
    llcl_status_t status = LLCL_OK;
    am_register(context, 1, take, inbox);
    fence(context);
    am.flags = LLCL_FLAG_PARK;
    am.payload_size = sizeof header;
    while (accepted < 4 * KEPT) {
        numbers[accepted] = header = accepted;
        am.payload = &numbers[accepted];
        status = llcl_try_am_async(context, &am);
        if (status != LLCL_OK)
            break;
        accepted++;
    }
    header = 77;
    /* A rank that waits in the library handles messages, and so makes room for the other rank,
     * which may still be sending. */
    sleep_ms(200);
    CHECK(status == LLCL_RETRY_NO_CREDIT || (status == LLCL_RETRY_QUEUE_FULL && test_mode_is("offload")));
    CHECK(accepted >= KEPT && accepted <= KEPT + TAKEN);
    CHECK_EQUAL(am_stats(context).parked_high_water, KEPT);
    counts[0] = accepted;
    counts[1] = accepted * (accepted - 1) / 2;
    CHECK_OK(llcl_allgather_bytes(context, counts, sizeof counts, all));
    handled = all[peer * 2];
    while (inbox->next < handled)
        CHECK_OK(llcl_am_wait(context, TEST_PATIENCE_NS));
    CHECK_EQUAL(inbox->next, handled);
    CHECK_EQUAL(inbox->sum, all[peer * 2 + 1]);
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    CHECK_EQUAL(inbox->next, handled);
    POST(llcl_am_register(context, 1, NULL, NULL));
}

static void run(llcl_context_t *context)
{
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        from_a_callback(context, kind, 0);
        from_a_callback(context, kind, LLCL_FLAG_DEFER);
    }
    /* Another thread may serve a queue while the callback fills it; not in each of the four. */
    CHECK(am_stats(context).parked > 0);
    messages(context);
}

TEST_MAIN_CONFIG(run, configure)
