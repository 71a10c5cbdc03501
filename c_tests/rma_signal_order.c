/* Broken if this fails: in a long stream of writes with signals, some signal is seen before its
 * data. 100,000 rounds of 8 to 512 bytes; the target checks the data at every signal that it sees.
 * ranks: 2
 * cma: on off
 * threads: 2
 * timeout: 60
 */
#include "shared.h"

#define ROUNDS (test_in_threads() ? 10000u : 100000u)
#define SLOTS 64u
#define WORDS 64u

/* Slot s holds round r when every word of it is r; the writer runs at most SLOTS - 1 ahead, because
 * the target acknowledges in a word of the writer's. */
static void writer(llcl_context_t *context, struct shared *data, struct shared *source,
                   struct shared *ack)
{
    struct tally tally = {0, 0, 0};
    uint64_t round;
    for (round = 1; round <= ROUNDS; round++) {
        uint64_t slot = round % SLOTS;
        uint64_t words = 1 + round % WORDS, i;
        llcl_write_signal_params_t write = {0};
        if (round >= SLOTS) {
            CHECK_OK(llcl_wait_word(context, ack->words, round - SLOTS + 1, TEST_PATIENCE_NS));
            AWAIT(&tally.fired, round - SLOTS + 1);
        }
        for (i = 0; i < words; i++)
            source->words[slot * WORDS + i] = round;
        write.peer = 1;
        write.flags = round % 5 == 0 ? LLCL_FLAG_DEFER : 0;
        write.source = llcl_region_local(source->region, slot * WORDS * 8);
        write.destination = remote_at(data, 1, slot * WORDS * 8);
        write.size = words * 8;
        write.signal = remote_at(data, 1, (SLOTS * WORDS + slot) * 8);
        write.signal_op = LLCL_SIGNAL_SET;
        write.signal_value = round;
        write.on_complete = count_in(&tally);
        POST(llcl_try_write_signal_async(context, &write));
    }
    AWAIT(&tally.fired, ROUNDS);
    CHECK_OK(llcl_flush_all(context));
    CHECK_EQUAL(tally.fired, ROUNDS);
    CHECK_EQUAL(tally.failed, 0);
}

static void reader(llcl_context_t *context, struct shared *data, struct shared *ack)
{
    uint64_t round, i;
    for (round = 1; round <= ROUNDS; round++) {
        uint64_t slot = round % SLOTS;
        CHECK_OK(llcl_wait_word(context, &data->words[SLOTS * WORDS + slot], round,
                                TEST_PATIENCE_NS));
        for (i = 0; i < 1 + round % WORDS; i++)
            CHECK_EQUAL(data->words[slot * WORDS + i], round);
        if (round % 16 == 0 || round == ROUNDS) {
            llcl_write_value_params_t value = {0};
            value.peer = 0;
            value.destination = remote_at(ack, 0, 0);
            value.value = round;
            value.size = 8;
            CHECK_OK(llcl_write_value(context, &value));
        }
    }
}

static void run(llcl_context_t *context)
{
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared data, source, ack;
        share(context, kind, (SLOTS * WORDS + SLOTS) * 8, &data);
        share(context, ALLOCATED, 64, &ack);
        region_make(context, kind, SLOTS * WORDS * 8, &source);
        if (llcl_rank(context) == 0)
            writer(context, &data, &source, &ack);
        else
            reader(context, &data, &ack);
        share_end(context, &data);
        share_end(context, &ack);
        region_drop(&source);
    }
}

TEST_MAIN(run)
