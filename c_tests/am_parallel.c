/* Broken if this fails: where LLCL_AM_HANDLERS is parallel, two handlers of a context cannot run at
 * the same time on two threads that wait, or on one that waits and the library's own; or messages
 * are lost or doubled then.
 * ranks: 2 3
 * modes: auto direct
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 30
 */
#include "am.h"

#define MEETINGS 10u
#define MESSAGES 2000u
#define WAITERS 2

struct rank {
    llcl_context_t *context;
    uint64_t come, met, waiting_until;
    struct ledger ledger;
};

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_PARALLEL;
}

/* The 2n-th and the (2n + 1)-th handler wait for each other. */
static void meet(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint64_t mine = word_add(&rank->come, 1);
    int64_t end = now_ns() + 5000000000;
    (void)message;
    while (word_get(&rank->come) < (mine | 1) + 1 && now_ns() < end)
        sched_yield();
    CHECK(word_get(&rank->come) >= (mine | 1) + 1);
    word_add(&rank->met, 1);
}

static void count(llcl_am_t *message, void *data)
{
    uint32_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    ledger_mark(&((struct rank *)data)->ledger, am_source(message), number);
}

static void *wait_there(void *data)
{
    struct rank *rank = data;
    test_rank = llcl_rank(rank->context);
    AM_AWAIT(rank->context, &rank->met, rank->waiting_until);
    return NULL;
}

/* From one rank to another, in pairs: the next pair when the last one has met. */
static void meetings(struct rank *rank, uint32_t waiters)
{
    uint32_t me = llcl_rank(rank->context), i, j;
    pthread_t threads[WAITERS];
    if (me == 0) {
        rank->waiting_until = word_get(&rank->met) + 2 * MEETINGS;
        for (i = 0; i < waiters; i++)
            CHECK(pthread_create(&threads[i], NULL, wait_there, rank) == 0);
        for (i = 0; i < waiters; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    } else if (me == 1) {
        for (i = 0; i < MEETINGS; i++) {
            uint64_t done = 0;
            for (j = 0; j < 2; j++) {
                llcl_am_params_t am = am_to(0, 0, NULL, 0);
                am.on_complete = llcl_add_on(&done);
                POST(llcl_try_am_async(rank->context, &am));
            }
            AM_AWAIT(rank->context, &done, 2);
            CHECK_EQUAL(done, 2);
        }
    }
    fence(rank->context);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t size = llcl_size(context), i;
    rank->context = context;
    CHECK_EQUAL(am_limits(context).am_handlers, LLCL_AM_HANDLERS_PARALLEL);
    ledger_make(&rank->ledger, size, MESSAGES);
    am_register(context, 0, meet, rank);
    am_register(context, 1, count, rank);
    fence(context);
    meetings(rank, 2);
    meetings(rank, 1);
    for (i = 0; i < size * MESSAGES; i++) {
        uint32_t number = i / size;
        llcl_am_params_t am = am_to(i % size, 1, &number, sizeof number);
        CHECK_OK(llcl_am_async(context, &am));
    }
    ledger_await(context, &rank->ledger, AM_PATIENCE_NS);
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
