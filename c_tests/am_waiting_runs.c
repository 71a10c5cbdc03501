/* Broken if this fails: a thread that waits in llcl_wait_word does not run its rank's handlers; or
 * it does so in offload mode, where only the library's own threads run handlers. In the first part
 * the library's thread is in a handler that does not return, so only the waiting thread can run
 * the others.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

#define MESSAGES 3000u
#define MOST 30000u
#define SPELL 100
#define ALONE 200u

enum { COUNT, HOLD };

struct rank {
    uint64_t count, by_waiter, held, released;
    pthread_t waiter;
};

static void configure(llcl_config_t *config)
{
    /* Handlers run while another one does not return. */
    if (!test_mode_is("offload"))
        config->am_handlers = LLCL_AM_HANDLERS_PARALLEL;
}

static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    CHECK(!pthread_equal(pthread_self(), rank->waiter));
    word_set(&rank->held, 1);
    AWAIT(&rank->released, 1);
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    if (pthread_equal(pthread_self(), rank->waiter))
        word_add(&rank->by_waiter, 1);
    word_add(&rank->count, 1);
}

/* Returns when the threads of both ranks are outside of the library: a thread that is still in a
 * fence may run handlers. */
static llcl_region_t *meet_outside(llcl_context_t *context)
{
    static uint64_t one = 1;
    llcl_region_t *region;
    llcl_remote_t all[2];
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    CHECK_OK(llcl_region_allocate_shared(context, sizeof one, &region, all));
    put.peer = 1 - llcl_rank(context);
    put.source = llcl_local_address(&one);
    put.destination = all[put.peer];
    put.size = sizeof one;
    CHECK_OK(llcl_write_async(context, &put));
    AWAIT((uint64_t *)llcl_region_address(region), 1);
    return region;
}

/* Only the waiting thread runs handlers. */
static void alone(llcl_context_t *context, struct rank *rank)
{
    llcl_am_params_t first = am_to(1 - llcl_rank(context), HOLD, NULL, 0);
    llcl_region_t *region = meet_outside(context);
    uint32_t i;
    /* Each rank's thread waits outside of the library, whose thread runs the handler. */
    if (llcl_rank(context) == 1)
        AWAIT(&rank->held, 1);
    CHECK_OK(llcl_am_async(context, &first));
    if (llcl_rank(context) == 0)
        AWAIT(&rank->held, 1);
    fence(context);
    for (i = 0; i < ALONE; i++) {
        llcl_am_params_t am = am_to(1 - llcl_rank(context), COUNT, NULL, 0);
        if (llcl_rank(context) == i % 2)
            CHECK_OK(llcl_am_async(context, &am));
        else
            CHECK_OK(llcl_wait_word(context, &rank->count, i / 2 + 1, TEST_PATIENCE_NS / 2));
    }
    fence(context);
    CHECK_EQUAL(rank->by_waiter, ALONE / 2);
    word_set(&rank->released, 1);
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    CHECK_OK(llcl_region_free(region));
    rank->count = rank->by_waiter = 0;
}

/* One message at a time, so that the waiter is awake for most of them. */
static void spell(llcl_context_t *context, struct rank *rank, uint32_t first)
{
    uint32_t i;
    /* Once the library's own thread is awake it may be the faster one for long: let it sleep. */
    fence(context);
    sleep_ms(5);
    for (i = first; i < first + SPELL; i++) {
        llcl_am_params_t am = am_to(1 - llcl_rank(context), COUNT, NULL, 0);
        if (llcl_rank(context) == i % 2)
            CHECK_OK(llcl_am_async(context, &am));
        else
            AM_AWAIT(context, &rank->count, i / 2 + 1);
    }
}

static int both_have_run_some(llcl_context_t *context, struct rank *rank)
{
    uint64_t mine = word_get(&rank->by_waiter), all[2];
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    return all[0] > 0 && all[1] > 0;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t i;
    rank->waiter = pthread_self();
    am_register(context, COUNT, handle, rank);
    am_register(context, HOLD, hold, rank);
    fence(context);
    if (!test_mode_is("offload"))
        alone(context, rank);
    /* On a busy machine the library's own thread may be the faster one for all of the messages:
     * then there are more. */
    for (i = 0; i < MESSAGES || (i < MOST && !test_mode_is("offload") && !both_have_run_some(context, rank)); i += SPELL)
        spell(context, rank, i);
    fence(context);
    CHECK_EQUAL(word_get(&rank->count), i / 2);
    printf("%llu of %u handlers ran on the waiting thread\n", (unsigned long long)rank->by_waiter, i / 2);
    if (test_mode_is("offload"))
        CHECK_EQUAL(rank->by_waiter, 0);
    else
        CHECK(rank->by_waiter >= 1);
}

TEST_MAIN_CONFIG(run, configure)
