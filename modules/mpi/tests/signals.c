/* Small writes with signal over MPI, in both directions at the same time. 2 ranks, and the level of
 * threads that the program asks MPI for: multiple or funneled.
 *
 * In turns: a rank announces each turn by a write that nobody waits for (LLCL_FLAG_PARK, no
 * completion), and waits for the peer's, as the barriers of the conduit for GASNet do. Two words
 * take turns, since the writes to one may arrive in any order. In rows: a rank begins many writes
 * before it waits for those of the peer, in each way to call them. Each write has a place and a
 * value of its own. A rank that sees the word at the sum of all values must see all bytes, and in
 * the end the word is exactly that sum.
 *
 * A write of no bytes has its source at NULL. A write that is refused leaves bytes and word as they
 * are; it is refused also if it would be parked, since this rank has not used the region yet. */
#include "expect.h"
#include <llcl_mpi.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 1000, ROW = 200, MOST = 64, SECONDS = 30 };
#define NS INT64_C(1000000000)
enum { PLACES = 64, BYTES = PLACES + TURNS * MOST };
enum { BLOCKING, PARKED, PLAIN, TOLD, REUSED, TRIED, WAYS };

/* Round the limits of what a call copies. */
static const size_t sizes[] = {8, 1, 0, 24, 48, 49, MOST};

static llcl_context_t *context;
static llcl_remote_t all[2];
static unsigned char *region;
static unsigned char bytes[TURNS][MOST]; /* sources, unchanged until flush() */
static uint64_t sums[2];                 /* of the values that the peer has added to both words */

/* Both words are at the beginning of the region. */
static uint64_t *word(int which)
{
    return (uint64_t *)(void *)region + which;
}

static int is_at_sum(int which)
{
    return __atomic_load_n(word(which), __ATOMIC_ACQUIRE) == sums[which];
}

/* The value that write number `turn` adds. Both ranks use the same ones. */
static uint64_t value_of(int turn)
{
    return 1 + (uint64_t)turn % 7;
}

static unsigned char byte_of(int writer, int turn, size_t at)
{
    return (unsigned char)(turn * 11 + writer * 5 + (int)at + 1);
}

static void wait_for_sum(int which)
{
    LLCL_CHECK(llcl_wait_word_from(context, word(which), sums[which], SECONDS * NS, (uint32_t)(1 - rank)));
}

/* All writes of this rank have ended, and both ranks are here. */
static void meet(void)
{
    LLCL_CHECK(llcl_flush_all(context));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

static llcl_write_signal_params_t write_of(int turn, size_t size)
{
    llcl_write_signal_params_t put = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    for (size_t at = 0; at < size; at++)
        bytes[turn][at] = byte_of(rank, turn, at);
    put.peer = (uint32_t)(1 - rank);
    put.source = llcl_local_address(size > 0 ? bytes[turn] : NULL);
    put.destination = llcl_at(all[1 - rank], PLACES + (uint64_t)turn * MOST);
    put.size = size;
    put.signal = all[1 - rank];
    put.signal_op = LLCL_SIGNAL_ADD;
    put.signal_value = value_of(turn);
    return put;
}

/* Whether a write of the peer has put its bytes to their place, and nothing behind them. */
static int is_here(int turn, size_t size)
{
    const unsigned char *place = region + PLACES + turn * MOST;
    for (size_t at = 0; at < MOST; at++)
        if (place[at] != (at < size ? byte_of(1 - rank, turn, at) : 0))
            return 0;
    return 1;
}

static void in_turns(size_t size)
{
    memset(region + PLACES, 0, BYTES - PLACES);
    meet();
    for (int turn = 0; turn < TURNS; turn++) {
        int which = turn % 2;
        llcl_write_signal_params_t put = write_of(turn, size);
        put.signal = llcl_at(put.signal, 8 * (uint64_t)which);
        put.flags = LLCL_FLAG_PARK;
        LLCL_CHECK(llcl_write_signal_async(context, &put));
        sums[which] += value_of(turn);
        wait_for_sum(which);
        /* The peer's next write to this word comes behind this rank's next turn. */
        EXPECT(is_at_sum(which) && is_here(turn, size));
    }
    meet();
    EXPECT(is_at_sum(0) && is_at_sum(1));
}

/* Ends of writes that a callback or a word was told of. */
static uint64_t ended, reusable;

static void end(void *unused, llcl_status_t status)
{
    (void)unused;
    EXPECT(status == LLCL_OK);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static void begin(int way, int turn, llcl_write_signal_params_t *put)
{
    uint64_t before = reusable;
    switch (way) {
    case BLOCKING:
        LLCL_CHECK(llcl_write_signal(context, put));
        return;
    case TRIED: {
        llcl_status_t status;
        while ((status = llcl_try_write_signal_async(context, put)) > 0)
            LLCL_CHECK(llcl_progress(context));
        LLCL_CHECK(status);
        return;
    }
    case PARKED:
        put->flags = LLCL_FLAG_PARK;
        break;
    case TOLD:
        put->on_local = llcl_add_on(&reusable);
        put->on_complete = llcl_callback(end, NULL);
        break;
    case REUSED:
        put->on_local = llcl_add_on(&reusable);
        break;
    }
    LLCL_CHECK(llcl_write_signal_async(context, put));
    if (way == REUSED) {
        LLCL_CHECK(llcl_wait_word(context, &reusable, before + 1, SECONDS * NS));
        memset(bytes[turn], 0xee, MOST);
    }
}

static void in_a_row(int way, size_t size)
{
    uint64_t before = ended, reused = reusable;
    memset(region + PLACES, 0, BYTES - PLACES);
    meet();
    for (int turn = 0; turn < ROW; turn++) {
        llcl_write_signal_params_t put = write_of(turn, size);
        begin(way, turn, &put);
        sums[0] += value_of(turn);
    }
    wait_for_sum(0);
    for (int turn = 0; turn < ROW; turn++)
        EXPECT(is_here(turn, size));
    meet();
    EXPECT(is_at_sum(0));
    if (way == TOLD)
        EXPECT(__atomic_load_n(&ended, __ATOMIC_ACQUIRE) == before + ROW && reusable == reused + ROW);
}

/* The word is set, not added to. */
static void set(void)
{
    llcl_write_signal_params_t put = write_of(0, 8);
    put.signal_op = LLCL_SIGNAL_SET;
    meet();
    for (int turn = 0; turn < ROW; turn++) {
        put.signal_value = ++sums[0];
        LLCL_CHECK(llcl_write_signal(context, &put));
    }
    meet();
    EXPECT(is_at_sum(0));
}

static void refused(void)
{
    llcl_region_t *handle;
    llcl_remote_t fresh[2];
    llcl_write_signal_params_t put = write_of(1, 8);
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &handle, fresh));
    put.destination = put.signal = fresh[1 - rank];
    put.source = llcl_local_address(NULL);
    put.flags = LLCL_FLAG_PARK;
    EXPECT(llcl_write_signal_async(context, &put) == LLCL_ERR_KEY);
    put.size = 0;
    LLCL_CHECK(llcl_write_signal_async(context, &put));
    meet();
    EXPECT(*(uint64_t *)llcl_region_address(handle) == value_of(1));
    LLCL_CHECK(llcl_region_free(handle));
    put = write_of(1, 8);
    memset(region + PLACES, 0, BYTES - PLACES);
    meet();
    put.signal = llcl_at(all[1 - rank], BYTES);
    EXPECT(llcl_write_signal(context, &put) == LLCL_ERR_RANGE);
    put.signal = llcl_at(all[1 - rank], 4);
    EXPECT(llcl_write_signal(context, &put) == LLCL_ERR_INVALID);
    put = write_of(1, 8);
    put.destination = llcl_at(all[1 - rank], BYTES - 4);
    EXPECT(llcl_write_signal(context, &put) == LLCL_ERR_RANGE);
    meet();
    EXPECT(is_at_sum(0));
    for (size_t at = PLACES; at < BYTES; at++)
        EXPECT(region[at] == 0);
}

int main(int argc, char **argv)
{
    llcl_region_t *handle;
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    int funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    alarm(2 * SECONDS); /* a blocking write that does not end */
    context = start(funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate_shared(context, BYTES, &handle, all));
    region = llcl_region_address(handle);
    LLCL_CHECK(llcl_query_peer(context, (uint32_t)(1 - rank), &peer));
    EXPECT(peer.transport == LLCL_TRANSPORT_WIRE);
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        if (sizes[at] <= 8)
            in_turns(sizes[at]);
        for (int way = 0; way < WAYS; way++)
            in_a_row(way, sizes[at]);
    }
    set();
    refused();
    LLCL_CHECK(llcl_finalize(context));
    printf("signals: rank %d: passed, %s\n", rank, funneled ? "funneled" : "multiple");
    end_mpi();
    return 0;
}
