/* Broken if this fails: a process that is stopped (SIGSTOP) in the middle of a slot holds up the
 * messages of others as long as it is stopped, or what it then finishes is lost, doubled or in
 * pieces.
 * ranks: 3
 * modes: auto direct
 * policies: acquire limit distributed
 * timeout: 30
 */
#include "stopped.h"
#include "am.h"

enum { CHECK_IT, ALL_SENT };
enum { ROUNDS = 20, PASSES = 60, MOST = 65536 };

struct rank {
    uint64_t from[3], sent, over;
};

static void check_it(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    uint32_t number;
    CHECK_EQUAL(view.header_size, sizeof number);
    memcpy(&number, view.header, sizeof number);
    CHECK(pattern_holds(view.payload, view.payload_size, view.source + number % 2));
    word_add(&rank->from[view.source], 1);
}

static void all_sent(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    memcpy(&rank->sent, am_view(message).header, sizeof rank->sent);
    word_add(&rank->over, 1);
}

/* Messages of both kinds of slots, most of whose time goes into the slot, until rank 1 says that it
 * is over. */
static void flood(llcl_context_t *context, struct rank *rank)
{
    unsigned char *bytes[2] = {am_new(MOST), am_new(MOST)};
    uint64_t sent = 0;
    uint32_t number;
    pattern_fill(bytes[0], MOST, 2);
    pattern_fill(bytes[1], MOST, 3);
    for (number = 0; !word_get(&rank->over); number++, sent++) {
        llcl_am_params_t am = am_to(0, CHECK_IT, &number, sizeof number);
        am.payload = bytes[number % 2];
        am.payload_size = number % 3 ? MOST : 4096;
        CHECK_OK(llcl_am_async(context, &am));
    }
    {
        llcl_am_params_t am = am_to(0, ALL_SENT, &sent, sizeof sent);
        CHECK_OK(llcl_am_async(context, &am));
    }
}

static uint64_t stop_and_pass(llcl_context_t *context)
{
    unsigned char *bytes = am_new(MOST);
    int64_t slowest = 0;
    uint32_t number = 0;
    int round, pass;
    pattern_fill(bytes, MOST, 1);
    for (round = 0; round < ROUNDS; round++) {
        pid_t pid;
        usleep(2000 + 137 * (unsigned)round);
        pid = peer_stop(context, 2);
        for (pass = 0; pass < PASSES; pass++, number += 2) {
            llcl_am_params_t am = am_to(0, CHECK_IT, &number, sizeof number);
            int64_t begin = now_ns(), took;
            am.payload = bytes;
            am.payload_size = pass % 2 ? MOST : 4096;
            CHECK_OK(llcl_am(context, &am));
            took = now_ns() - begin;
            slowest = took > slowest ? took : slowest;
        }
        CHECK(kill(pid, SIGCONT) == 0);
    }
    printf("%d stops: the slowest of %d requests behind the stopped sender took %lld us\n", ROUNDS,
           ROUNDS * PASSES, (long long)slowest / 1000);
    return number / 2;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint64_t passed = 0, all[3];
    am_register(context, CHECK_IT, check_it, rank);
    am_register(context, ALL_SENT, all_sent, rank);
    fence(context);
    if (llcl_rank(context) == 1) {
        uint64_t none = 0;
        llcl_am_params_t am = am_to(2, ALL_SENT, &none, sizeof none);
        passed = stop_and_pass(context);
        CHECK_OK(llcl_am_async(context, &am));
    } else if (llcl_rank(context) == 2) {
        flood(context, rank);
    } else {
        AM_AWAIT(context, &rank->over, 1);
    }
    CHECK_OK(llcl_allgather_bytes(context, &passed, sizeof passed, all));
    if (llcl_rank(context) == 0) {
        AM_AWAIT(context, &rank->from[2], rank->sent);
        AM_AWAIT(context, &rank->from[1], all[1]);
        printf("%llu messages of the stopped sender came, %llu slots were passed over\n",
               (unsigned long long)rank->sent, (unsigned long long)am_stats(context).skips);
    }
    fence(context);
    CHECK(llcl_rank(context) != 0 || rank->from[2] == rank->sent);
}

TEST_MAIN(run)
