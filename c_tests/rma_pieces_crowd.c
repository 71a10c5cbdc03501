/* Broken if this fails: reads of many pieces that find no slot for their list, since many ranks
 * read from one that executes nothing for a while, lose their places for the answers, and wait for
 * ever.
 * ranks: 7
 * modes: auto offload
 * cma: off
 */
#include "stopped.h"

/* The list is longer than a small request, and the bytes are more than a small answer. */
enum { PIECES = 64, PIECE = 256, READS = 12, STRIDE = 512 };

static void read_all(llcl_context_t *context, const struct shared *from, struct shared *to,
                     struct tally *tally)
{
    llcl_strided_params_t read = LLCL_STRIDED_PARAMS_INIT;
    uint32_t i;
    read.peer = 0;
    read.remote = from->remote[0];
    read.size = PIECE;
    read.dimensions = 1;
    read.extents[0] = PIECES;
    read.local_strides[0] = PIECE;
    read.remote_strides[0] = STRIDE;
    read.on_complete = count_in(tally);
    for (i = 0; i < READS; i++) {
        read.local = llcl_region_local(to->region, (uint64_t)i * PIECES * PIECE);
        CHECK_OK(llcl_read_strided_async(context, &read));
    }
}

static void check_all(const struct shared *to)
{
    uint32_t i, piece;
    for (i = 0; i < READS; i++)
        for (piece = 0; piece < PIECES; piece++)
            CHECK(bytes_are(to->bytes + (i * PIECES + piece) * PIECE, PIECE, (unsigned char)(piece + 1)));
}

/* Rank 1 stops rank 0, tells the others, and lets rank 0 go on some time later. */
static pid_t stop(llcl_context_t *context, const struct shared *told)
{
    llcl_write_value_params_t tell = LLCL_WRITE_VALUE_PARAMS_INIT;
    pid_t stopped = peer_stop(context, 0);
    tell.value = 1;
    tell.size = 8;
    for (tell.peer = 1; tell.peer < llcl_size(context); tell.peer++) {
        tell.destination = remote_at(told, tell.peer, 0);
        CHECK_OK(llcl_write_value(context, &tell));
    }
    return stopped;
}

static void run(llcl_context_t *context)
{
    struct shared from, to, told;
    struct tally tally = {0, 0, 0};
    uint32_t piece;
    share(context, REGISTERED, PIECES * STRIDE, &from);
    share(context, ALLOCATED, 64, &told);
    region_make(context, ALLOCATED, READS * PIECES * PIECE, &to);
    for (piece = 0; piece < PIECES; piece++)
        memset(from.bytes + piece * STRIDE, (int)piece + 1, PIECE);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) != 0) {
        pid_t stopped = llcl_rank(context) == 1 ? stop(context, &told) : 0;
        AWAIT(told.words, 1);
        read_all(context, &from, &to, &tally);
        sleep_ms(200);
        if (stopped)
            CHECK(kill(stopped, SIGCONT) == 0);
        AWAIT(&tally.fired, READS);
        CHECK_EQUAL(tally.failed, 0);
        check_all(&to);
    }
    share_end(context, &from);
    share_end(context, &told);
    region_drop(&to);
}

TEST_MAIN(run)
