/* Broken if this fails: while parked messages to one rank wait for credit, because it handles none,
 * parked messages to another rank, which has free slots again, wait behind them.
 * ranks: 3
 * modes: auto direct
 * policies: acquire limit distributed
 * threads: 3
 */
#include "am.h"

enum { COUNT };
enum { MOST = 100000 };

/* Posts until a message to this rank is parked. Returns how many were posted. */
static uint64_t park(llcl_context_t *context, uint32_t peer)
{
    llcl_am_params_t am = am_to(peer, COUNT, NULL, 0);
    uint64_t before = am_stats(context).parked, posted = 0;
    am.flags = LLCL_FLAG_PARK;
    while (am_stats(context).parked == before) {
        CHECK_OK(llcl_try_am_async(context, &am));
        CHECK(posted++ < MOST);
    }
    return posted;
}

static void tell(llcl_context_t *context, const struct shared *told, uint32_t peer, uint64_t value)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    write.peer = peer;
    write.destination = remote_at(told, peer, 0);
    write.value = value;
    write.size = sizeof value;
    CHECK_OK(llcl_write_value(context, &write));
}

static void run(llcl_context_t *context)
{
    uint64_t *counted = am_new(sizeof *counted);
    struct shared told;
    share(context, ALLOCATED, 64, &told);
    am_register(context, COUNT, am_count_up, counted);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0) {
        uint64_t first = park(context, 1), second = park(context, 2);
        tell(context, &told, 2, second);
        /* Rank 2 has handled all of them. */
        CHECK_OK(llcl_wait_word(context, told.words, 1, TEST_PATIENCE_NS));
        tell(context, &told, 1, first);
    } else {
        /* Without a call of the library, in which handlers run. */
        AWAIT(told.words, 1);
        AM_AWAIT(context, counted, word_get(told.words));
        if (llcl_rank(context) == 2)
            tell(context, &told, 0, 1);
    }
    share_end(context, &told);
}

TEST_MAIN_CONFIG(run, am_few_polled)
