/* Broken if this fails: a message does not wake a receiver that sleeps, in llcl_wait_word or
 * outside of the library, within 20 ms; an answer does not wake a sender that sleeps; or a flood of
 * messages costs a system call for every one.
 * ranks: 2
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 30
 * wire: no (counts the rings of a sender that rings by itself)
 */
#include "am.h"

#define TRIES 4
#define FLOOD 100000u
#define FAST_FLOOD 20000u

struct rank {
    uint64_t count;
    int64_t handled_at;
};

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    __atomic_store_n(&rank->handled_at, now_ns(), __ATOMIC_RELAXED);
    word_add(&rank->count, 1);
}

/* The best of a few: a busy machine may be late; a lost wake-up is late every time. */
static void sleeper(llcl_context_t *context, struct rank *rank, int in_library)
{
    int64_t best_there = INT64_MAX, best_back = INT64_MAX, best_seen = INT64_MAX;
    int i;
    for (i = 0; i < TRIES; i++) {
        int64_t mine[2] = {0, 0}, both[2][2];
        uint64_t before = word_get(&rank->count);
        fence(context);
        if (llcl_rank(context) == 0) {
            llcl_am_params_t am = am_to(1, 0, NULL, 0);
            uint64_t done = 0;
            am.on_complete = llcl_store_on(&done);
            sleep_ms(50);
            mine[0] = now_ns();
            POST(llcl_try_am_async(context, &am));
            AM_AWAIT(context, &done, 1);
            mine[1] = now_ns();
        } else {
            if (in_library)
                AM_AWAIT(context, &rank->count, before + 1);
            else
                AWAIT(&rank->count, before + 1);
            mine[1] = now_ns();
            mine[0] = rank->handled_at;
        }
        CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, both));
        best_there = both[1][0] - both[0][0] < best_there ? both[1][0] - both[0][0] : best_there;
        best_back = both[0][1] - both[1][0] < best_back ? both[0][1] - both[1][0] : best_back;
        best_seen = both[1][1] - both[1][0] < best_seen ? both[1][1] - both[1][0] : best_seen;
    }
    if (llcl_rank(context) == 0)
        printf("%s the library: handled after %lld us, answered after %lld us, seen after %lld us\n",
               in_library ? "in" : "outside of", (long long)best_there / 1000,
               (long long)best_back / 1000, (long long)best_seen / 1000);
    CHECK(best_there < 20000000);
    CHECK(best_back < 20000000);
    CHECK(best_seen < 20000000);
}

/* Wake-ups of the receiver while rank 0 sends so many messages to rank 1. */
static uint64_t flood(llcl_context_t *context, struct rank *rank, uint32_t messages)
{
    uint64_t before = word_get(&rank->count), wake_ups = am_stats(context).wake_ups, both[2];
    uint32_t i;
    fence(context);
    if (llcl_rank(context) == 0) {
        for (i = 0; i < messages; i++) {
            llcl_am_params_t am = am_to(1, 0, &i, sizeof i);
            POST(llcl_try_am_async(context, &am));
        }
    } else {
        AM_AWAIT(context, &rank->count, before + messages);
    }
    fence(context);
    wake_ups = am_stats(context).wake_ups - wake_ups;
    CHECK_OK(llcl_allgather_bytes(context, &wake_ups, sizeof wake_ups, both));
    return both[0];
}

/* The best of a few floods: ranks that share a core may take turns in one of them. */
static void floods(llcl_context_t *context, struct rank *rank)
{
    uint32_t messages = test_in_threads() ? FAST_FLOOD : FLOOD, i;
    uint64_t fewest = messages;
    for (i = 0; i < TRIES && fewest >= messages / 100; i++) {
        uint64_t wake_ups = flood(context, rank, messages);
        fewest = wake_ups < fewest ? wake_ups : fewest;
        if (llcl_rank(context) == 0)
            printf("%u messages, %llu wake-ups\n", messages, (unsigned long long)wake_ups);
    }
    CHECK(fewest < messages / 100);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    am_register(context, 0, handle, rank);
    fence(context);
    sleeper(context, rank, 1);
    sleeper(context, rank, 0);
    CHECK(llcl_rank(context) != 0 || am_stats(context).wake_ups >= 1);
    floods(context, rank);
    fence(context);
}

TEST_MAIN(run)
