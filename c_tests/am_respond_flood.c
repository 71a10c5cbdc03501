/* Broken if this fails: ranks that flood each other with requests, each of which is answered by a
 * response, lock each other up, lose something, or need memory that grows with the number of
 * requests: with one slot, and with polled, serial and parallel handlers; or a rank whose peer
 * takes no responses keeps more than a bounded number of them, or stops with a handler that does
 * not return. LLCL_TEST_FLOOD: requests of each rank, 10,000 if it is not set, and 2,500 as
 * threads, whose memory is not compared.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 60
 */
#include "am.h"

enum { ASK, ANSWER };

#define PARKED 256u /* a rank keeps so many responses that find no credit (engine::messages::parked) */
#define BESIDE 256u /* more than slots hold */
#define TRIES 20000u

struct rank {
    llcl_context_t *context;
    uint64_t answered, released;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 1;
    config->am_handlers = am_handlers_by_mode();
}

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_view_t view = am_view(message);
    llcl_am_params_t am = am_to(0, ANSWER, view.header, view.header_size);
    (void)data;
    am.payload = view.payload;
    am.payload_size = view.payload_size;
    CHECK_OK(llcl_am_respond(message, &am));
}

static void answer(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    AWAIT(&rank->released, 1);
    word_add(&rank->answered, 1);
}

/* Rank 0 takes no responses: its handler does not return, or it does not poll. The responses of
 * rank 1 find no credit soon; its handlers must return nevertheless, until it keeps PARKED
 * responses. Then it must handle no more requests. */
static void take_none(struct rank *rank)
{
    struct shared over;
    /* In offload mode the sender's lane keeps as many requests. */
    uint64_t asked = 0, least = test_mode_is("offload") ? 2 * PARKED : PARKED;
    uint32_t left, peer, naps = 0;
    share(rank->context, ALLOCATED, 64, &over);
    /* Behind a wire frames hold many requests. */
    left = llcl_rank(rank->context) == 0 && is_near(rank->context, 1) ? TRIES : 0;
    for (; left > 0; left -= asked >= least) {
        llcl_am_params_t am = am_to(1, ASK, &asked, sizeof asked);
        llcl_status_t status = llcl_try_am_async(rank->context, &am);
        CHECK(status >= 0);
        asked += status == LLCL_OK;
        CHECK(asked < least + BESIDE);
        if (status != LLCL_OK && asked < least)
            CHECK(naps++ < TEST_PATIENCE_NS / 100000 && usleep(100) == 0);
        else if (left % 16 == 0)
            sched_yield();
    }
    word_set(&rank->released, 1);
    for (peer = 1; llcl_rank(rank->context) == 0 && peer < llcl_size(rank->context); peer++) {
        llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
        write.peer = peer;
        write.destination = remote_at(&over, peer, 0);
        write.value = 1;
        write.size = sizeof(uint64_t);
        CHECK_OK(llcl_write_value(rank->context, &write));
    }
    if (llcl_rank(rank->context) != 0)
        AM_AWAIT(rank->context, over.words, 1);
    AM_AWAIT(rank->context, &rank->answered, asked);
    CHECK_EQUAL(word_get(&rank->answered), asked);
    word_set(&rank->answered, 0);
    share_end(rank->context, &over);
}

static void flood(struct rank *rank, uint64_t from, uint64_t to)
{
    static const unsigned char payload[1024];
    uint32_t me = llcl_rank(rank->context), size = llcl_size(rank->context);
    uint64_t i;
    for (i = from; i < to; i++) {
        llcl_am_params_t am = am_to((uint32_t)((me + 1 + i % (size - 1)) % size), ASK, &i, sizeof i);
        am.payload = payload;
        am.payload_size = i % 8 ? 0 : sizeof payload;
        CHECK_OK(llcl_am_async(rank->context, &am));
    }
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint64_t all = number_from("LLCL_TEST_FLOOD", test_in_threads() ? 2500 : 10000);
    long before, grown;
    rank->context = context;
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    fence(context);
    take_none(rank);
    flood(rank, 0, all / 4);
    before = resident_kib();
    flood(rank, all / 4, all);
    AM_AWAIT(context, &rank->answered, all);
    grown = resident_kib() - before;
    fence(context);
    CHECK_EQUAL(word_get(&rank->answered), all);
    printf("%llu answered; grown by %ld KiB\n", (unsigned long long)all, grown);
    CHECK(grown < 1024 || test_in_threads());
}

TEST_MAIN_CONFIG(run, configure)
