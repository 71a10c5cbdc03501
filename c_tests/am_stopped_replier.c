/* Broken if this fails: a process that is stopped (SIGSTOP) in the middle of a reply holds up the
 * replies of other ranks as long as it is stopped, or a reply that it then finishes is lost,
 * doubled or in pieces.
 * ranks: 3
 * timeout: 60
 */
#include "am.h"
#include "stopped.h"

enum { ANSWER };
enum { ROUNDS = 200, PASSES = 20, UNDER_WAY = 8, SIZE = 65536 };

/* A request to the rank that is stopped. */
struct request {
    uint64_t ended, number;
    unsigned char *bytes;
};

/* Replies of the largest size: most of a replier's time goes into the slot. */
static void configure(llcl_config_t *config)
{
    config->am_medium = SIZE;
}

static unsigned char *patterns[2];

static void answer(llcl_am_t *message, void *data)
{
    uint64_t number;
    (void)data;
    memcpy(&number, am_view(message).header, sizeof number);
    CHECK_OK(llcl_am_reply(message, patterns[number % 2], SIZE));
}

static int is_answer(const unsigned char *bytes, uint64_t number)
{
    return memcmp(bytes, patterns[number % 2], SIZE) == 0;
}

/* Checks the replies that have come, and keeps UNDER_WAY requests to rank 1 under way. */
static void keep_asking(llcl_context_t *context, struct request *requests, uint64_t *sent)
{
    int i;
    for (i = 0; i < UNDER_WAY; i++) {
        struct request *it = &requests[i];
        llcl_am_params_t am = am_to(1, ANSWER, &it->number, sizeof it->number);
        if (it->number != 0) {
            if (word_get(&it->ended) == 0)
                continue;
            CHECK_EQUAL(word_get(&it->ended), 1);
            CHECK(is_answer(it->bytes, it->number));
        }
        memset(it->bytes, 0, SIZE);
        it->ended = 0;
        it->number = ++*sent;
        am.reply = it->bytes;
        am.reply_capacity = SIZE;
        am.on_complete = llcl_add_on(&it->ended);
        CHECK_OK(llcl_am_async(context, &am));
    }
    CHECK(llcl_progress(context) >= 0);
}

static void stop_and_ask(llcl_context_t *context)
{
    struct request requests[UNDER_WAY] = {{0, 0, NULL}};
    unsigned char *bytes = am_new(SIZE);
    uint64_t sent = 0, number = 0;
    int64_t slowest = 0;
    int round, i;
    for (i = 0; i < UNDER_WAY; i++)
        requests[i].bytes = am_new(SIZE);
    for (round = 0; round < ROUNDS; round++) {
        /* So many that rank 1 runs now, and is stopped in the middle of a reply in many rounds. */
        uint64_t enough = sent + 3 * UNDER_WAY + (uint64_t)round % 5;
        pid_t pid;
        while (sent < enough)
            keep_asking(context, requests, &sent);
        pid = peer_stop(context, 1);
        for (i = 0; i < PASSES; i++) {
            llcl_am_params_t am = am_to(2, ANSWER, &number, sizeof number);
            int64_t begin = now_ns(), took;
            number++;
            am.reply = bytes;
            am.reply_capacity = SIZE;
            CHECK_OK(llcl_am_within(context, &am, TEST_PATIENCE_NS));
            CHECK(is_answer(bytes, number));
            took = now_ns() - begin;
            slowest = took > slowest ? took : slowest;
        }
        CHECK(kill(pid, SIGCONT) == 0);
    }
    for (i = 0; i < UNDER_WAY; i++) {
        AM_AWAIT(context, &requests[i].ended, 1);
        CHECK(is_answer(requests[i].bytes, requests[i].number));
    }
    printf("%d stops, %llu replies of the stopped rank: the slowest of %d requests to another rank "
           "took %lld us\n", ROUNDS, (unsigned long long)sent, ROUNDS * PASSES,
           (long long)slowest / 1000);
}

static void run(llcl_context_t *context)
{
    uint32_t i;
    for (i = 0; i < 2; i++) {
        patterns[i] = am_new(SIZE);
        pattern_fill(patterns[i], SIZE, i);
    }
    am_register(context, ANSWER, answer, NULL);
    fence(context);
    if (llcl_rank(context) == 0)
        stop_and_ask(context);
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
