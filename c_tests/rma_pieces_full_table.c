/* Broken if this fails: a write of many pieces whose signal must be set by its owner is executed
 * while as many operations are under way as may be, so that there is no place for the signal: it is
 * lost, and the write never ends.
 * ranks: 3
 * modes: auto offload
 */
#include "stopped.h"

enum { IN_FLIGHT = 64, PIECES = 3 };

static void configure(llcl_config_t *config)
{
    config->in_flight = IN_FLIGHT;
}

/* Operations that stay under way, since rank 2 executes nothing. */
static void fill(llcl_context_t *context, const struct shared *target, struct tally *tally)
{
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    int i;
    add.peer = 2;
    add.target = remote_at(target, 2, 0);
    add.operand = 1;
    add.on_complete = count_in(tally);
    for (i = 0; i < IN_FLIGHT; i++)
        CHECK_OK(llcl_fetch_add_async(context, &add));
    /* Until the library's thread has taken them in. */
    sleep_ms(50);
    CHECK_EQUAL(word_get(&tally->fired), 0);
}

static void write_pieces(llcl_context_t *context, const struct shared *target, uint64_t *done)
{
    static uint64_t words[PIECES] = {1, 2, 3};
    llcl_strided_params_t write = LLCL_STRIDED_PARAMS_INIT;
    write.peer = 1;
    write.local = llcl_local_address(words);
    write.remote = remote_at(target, 1, 64);
    write.size = 8;
    write.dimensions = 1;
    write.extents[0] = PIECES;
    write.local_strides[0] = 8;
    write.remote_strides[0] = 64;
    write.signal = remote_at(target, 1, 0);
    write.signal_op = LLCL_SIGNAL_ADD;
    write.signal_value = 1;
    write.on_complete = llcl_add_on(done);
    CHECK_OK(llcl_write_strided_async(context, &write));
}

static void run(llcl_context_t *context)
{
    struct shared target;
    struct tally tally = {0, 0, 0};
    uint64_t done = 0;
    int i;
    share(context, REGISTERED, 4096, &target);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0) {
        pid_t stopped = peer_stop(context, 2);
        fill(context, &target, &tally);
        write_pieces(context, &target, &done);
        sleep_ms(50);
        CHECK(kill(stopped, SIGCONT) == 0);
        AWAIT(&done, 1);
        AWAIT(&tally.fired, IN_FLIGHT);
        CHECK_EQUAL(tally.failed, 0);
    } else if (llcl_rank(context) == 1) {
        CHECK_OK(llcl_wait_word(context, target.words, 1, TEST_PATIENCE_NS));
        for (i = 0; i < PIECES; i++)
            CHECK_EQUAL(target.words[8 * (i + 1)], (uint64_t)i + 1);
    }
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, configure)
