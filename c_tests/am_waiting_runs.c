/* Broken if this fails: a thread that waits in llcl_wait_word does not run its rank's handlers; or
 * it does so in offload mode, where only the library's own threads run handlers.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

#define MESSAGES 3000u
#define MOST 30000u
#define SPELL 100

struct rank {
    uint64_t count, by_waiter;
    pthread_t waiter;
};

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    if (pthread_equal(pthread_self(), rank->waiter))
        word_add(&rank->by_waiter, 1);
    word_add(&rank->count, 1);
}

/* One message at a time, so that the waiter is awake for most of them. */
static void spell(llcl_context_t *context, struct rank *rank, uint32_t first)
{
    uint32_t i;
    /* Once the library's own thread is awake it may be the faster one for long: let it sleep. */
    fence(context);
    sleep_ms(5);
    for (i = first; i < first + SPELL; i++) {
        llcl_am_params_t am = am_to(1 - llcl_rank(context), 0, NULL, 0);
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
    am_register(context, 0, handle, rank);
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

TEST_MAIN(run)
