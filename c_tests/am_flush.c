/* Broken if this fails: llcl_flush or llcl_flush_all returns before what was accepted has ended: a
 * reply is not there, its size is not, or a completion has not fired; while another thread, or the
 * library's own, takes the answers in.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

#define ROUNDS 300
#define FAST_ROUNDS 60
#define BATCH 16
#define SIZE 2000

struct waiter {
    llcl_context_t *context;
    uint64_t over;
};

static void handle(llcl_am_t *message, void *data)
{
    unsigned char bytes[SIZE];
    uint32_t seed;
    (void)data;
    memcpy(&seed, am_header(message, NULL), sizeof seed);
    pattern_fill(bytes, SIZE, seed);
    CHECK_OK(llcl_am_reply(message, bytes, SIZE));
}

/* Lends itself, and so may be in the midst of an answer. */
static void *lend(void *data)
{
    struct waiter *waiter = data;
    CHECK_OK(llcl_wait_word(waiter->context, &waiter->over, 1, AM_PATIENCE_NS));
    return NULL;
}

struct place {
    size_t size;
    unsigned char bytes[SIZE];
};

static void one_round(llcl_context_t *context, struct place *places, uint32_t round)
{
    uint32_t peer = (llcl_rank(context) + 1 + round % (llcl_size(context) - 1)) % llcl_size(context), i;
    struct tally tally = {0, 0, 0};
    for (i = 0; i < BATCH; i++) {
        uint32_t seed = round * BATCH + i;
        llcl_am_params_t am = am_to(peer, 0, &seed, sizeof seed);
        am.flags = i % 8 == 7 ? LLCL_FLAG_DEFER : 0;
        am.reply = places[i].bytes;
        am.reply_capacity = SIZE;
        am.reply_size = &places[i].size;
        if (i % 2)
            am.on_complete = count_in(&tally);
        places[i].size = 0;
        memset(places[i].bytes, 0, SIZE);
        CHECK_OK(llcl_am_async(context, &am));
    }
    if (round % 2)
        CHECK_OK(llcl_flush(context, peer));
    else
        CHECK_OK(llcl_flush_all(context));
    CHECK_EQUAL(word_get(&tally.fired), BATCH / 2);
    CHECK_EQUAL(tally.failed, 0);
    for (i = 0; i < BATCH; i++) {
        CHECK_EQUAL(places[i].size, SIZE);
        CHECK(pattern_holds(places[i].bytes, SIZE, round * BATCH + i));
    }
}

static void run(llcl_context_t *context)
{
    struct place *places = calloc(BATCH, sizeof *places);
    struct waiter waiter;
    pthread_t thread;
    uint32_t round;
    CHECK(places != NULL);
    waiter.context = context;
    waiter.over = 0;
    am_register(context, 0, handle, NULL);
    fence(context);
    for (round = 0; round < (test_in_threads() ? FAST_ROUNDS : ROUNDS); round++) {
        /* The second half of the rounds without a thread that lends itself. */
        if (round == 0)
            CHECK(pthread_create(&thread, NULL, lend, &waiter) == 0);
        one_round(context, places, round);
        if (round == (test_in_threads() ? FAST_ROUNDS : ROUNDS) / 2) {
            word_set(&waiter.over, 1);
            CHECK(pthread_join(thread, NULL) == 0);
        }
    }
    fence(context);
    free(places);
}

TEST_MAIN(run)
