/* Broken if this fails: a write with a signal moves wrong bytes of some size, or its signal is
 * lost, doubled, or visible at the target before the last byte of the data.
 * ranks: 1 2 3
 * cma: on off
 * threads: 2
 * timeout: 60
 */
#include "rma_sizes.h"

static void post(llcl_context_t *context, const struct transfer *transfer)
{
    llcl_write_signal_params_t write = {0};
    write.peer = transfer->peer;
    write.flags = transfer->flags;
    write.source = transfer->local;
    write.destination = transfer->remote;
    write.size = transfer->size;
    /* Adds nothing to the beginning of the region, which is a guard: sizes alone are asked
     * about. */
    write.signal = transfer->remote;
    write.signal.offset = 0;
    write.signal_op = LLCL_SIGNAL_ADD;
    write.signal_value = 0;
    write.on_complete = count_in(transfer->tally);
    POST(llcl_try_write_signal_async(context, &write));
}

#define ROUNDS 300

/* One writer, one target: the target looks at the data as soon as it sees the signal. */
static void order(llcl_context_t *context, int kind, int op, size_t size)
{
    uint32_t me = llcl_rank(context), ranks = llcl_size(context), target = (me + 1) % ranks;
    uint32_t writer = (me + ranks - 1) % ranks, round;
    struct shared data, signal, source;
    struct tally tally = {0, 0, 0};
    share(context, kind, size + 8, &data);
    share(context, ALLOCATED, 64, &signal);
    region_make(context, kind, size + 8, &source);
    for (round = 1; round <= ROUNDS; round++) {
        llcl_write_signal_params_t write = {0};
        pattern_fill(source.bytes, size, me * 7 + round);
        write.peer = target;
        write.flags = round % 3 == 0 ? LLCL_FLAG_DEFER : 0;
        write.source = llcl_region_local(source.region, 0);
        write.destination = remote_at(&data, target, 0);
        write.size = size;
        write.signal = remote_at(&signal, target, 0);
        write.signal_op = op == LLCL_SIGNAL_SET ? LLCL_SIGNAL_SET : LLCL_SIGNAL_ADD;
        write.signal_value = op == LLCL_SIGNAL_SET ? round : 1;
        write.on_complete = count_in(&tally);
        POST(llcl_try_write_signal_async(context, &write));
        CHECK_OK(llcl_wait_word(context, signal.words, round, TEST_PATIENCE_NS));
        CHECK_EQUAL(word_get(signal.words), round);
        CHECK(pattern_holds(data.bytes, size, writer * 7 + round));
        AWAIT(&tally.fired, round);
        fence(context);
    }
    CHECK_EQUAL(tally.failed, 0);
    share_end(context, &data);
    share_end(context, &signal);
    region_drop(&source);
}

static void run(llcl_context_t *context)
{
    int kind;
    all_sizes(context, sizes_write, post, SIZE_MAX);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        order(context, kind, LLCL_SIGNAL_SET, 0);
        order(context, kind, LLCL_SIGNAL_SET, 24);
        order(context, kind, LLCL_SIGNAL_ADD, 70001);
    }
}

TEST_MAIN(run)
