/* Broken if this fails: ranks that flood each other with requests, each of which is answered by a
 * response, lock each other up, lose something, or need memory that grows with the number of
 * requests: with one slot, and with polled, serial and parallel handlers. LLCL_TEST_FLOOD: requests
 * of each rank.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 60
 */
#include "am.h"

enum { ASK, ANSWER };

struct rank {
    llcl_context_t *context;
    uint64_t answered;
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
    (void)message;
    word_add(&((struct rank *)data)->answered, 1);
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
    uint64_t all = number_from("LLCL_TEST_FLOOD", 10000);
    long before, grown;
    rank->context = context;
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    fence(context);
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
