/* Broken if this fails: ranks that flood each other with requests, each of which needs an answer,
 * lock each other up: with one slot and few requests, from threads and from handlers.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 40
 */
#include "am.h"

#define REQUESTS 500u
#define FROM_HANDLERS 800u

enum { ASK, CHAIN };

struct rank {
    llcl_context_t *context;
    struct later later;
    uint64_t asked, answered, chained, ended;
    uint64_t fired;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 1;
    config->am_requests = 64;
    config->am_medium = 64;
}

static void answer(llcl_am_t *message, void *data)
{
    uint64_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    number++;
    CHECK_OK(llcl_am_reply(message, &number, sizeof number));
    word_add(&((struct rank *)data)->answered, 1);
}

static void fire(void *data, llcl_status_t status)
{
    CHECK_OK(status);
    word_add(&((struct rank *)data)->fired, 1);
}

/* A chain of requests that handlers send: each waits for an answer, too. */
static void chain(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint64_t left;
    memcpy(&left, am_header(message, NULL), sizeof left);
    if (left) {
        llcl_am_params_t am;
        left--;
        am = am_to(am_source(message), CHAIN, &left, sizeof left);
        am.on_complete = llcl_callback(fire, rank);
        word_add(&rank->chained, 1);
        later_send(&rank->later, rank->context, &am);
    } else {
        word_add(&rank->ended, 1);
    }
}

static void *flood(void *data)
{
    struct rank *rank = data;
    uint32_t me = llcl_rank(rank->context), size = llcl_size(rank->context), i;
    test_rank = me;
    for (i = 0; i < REQUESTS; i++) {
        uint64_t number = i, reply = 0;
        llcl_am_params_t am = am_to((me + 1 + i % (size - 1)) % size, ASK, &number, sizeof number);
        am.reply = &reply;
        am.reply_capacity = sizeof reply;
        CHECK_OK(llcl_am(rank->context, &am));
        CHECK_EQUAL(reply, number + 1);
        word_add(&rank->asked, 1);
    }
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    uint64_t chains = 4, left = FROM_HANDLERS / 4, mine[2], all[4][2];
    pthread_t threads[2];
    rank->context = context;
    later_make(&rank->later);
    am_register(context, ASK, answer, rank);
    am_register(context, CHAIN, chain, rank);
    fence(context);
    for (i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, flood, rank) == 0);
    for (i = 0; i < chains; i++) {
        llcl_am_params_t am = am_to((me + 1) % size, CHAIN, &left, sizeof left);
        am.on_complete = llcl_callback(fire, rank);
        word_add(&rank->chained, 1);
        CHECK_OK(llcl_am_async(context, &am));
    }
    later_await(&rank->later, context, &rank->asked, 2 * REQUESTS);
    for (i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (;;) {
        uint64_t ended = 0;
        later_drain(&rank->later, context);
        mine[0] = word_get(&rank->ended);
        mine[1] = word_get(&rank->answered);
        CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
        for (i = 0; i < size; i++)
            ended += all[i][0];
        if (ended == chains * size)
            break;
        usleep(200);
    }
    AM_AWAIT(context, &rank->fired, word_get(&rank->chained));
    fence(context);
    CHECK_EQUAL(word_get(&rank->fired), word_get(&rank->chained));
    CHECK_EQUAL(am_stats(context).slots_high_water, 1);
}

TEST_MAIN_CONFIG(run, configure)
