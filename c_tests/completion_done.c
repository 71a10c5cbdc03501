/* Broken if this fails: with LLCL_FLAG_DONE a request that has ended in the call answers something
 * else than LLCL_DONE, or fires one of its completions; one that has not ended answers LLCL_DONE,
 * or loses a completion; a blocking call, offload mode or LLCL_FLAG_DEFER answers LLCL_DONE; a
 * write that answers it does not wake who sleeps on its word; or a completion of an undefined kind
 * is accepted, with the flag or without it, where nothing fires.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "shared.h"

enum { READ, WRITE, SIGNAL, VALUE, SMALL, ATOMIC, FETCH_ADD, SWAP, STRIDED_READ, STRIDED_WRITE, READV, WRITEV, OPERATIONS };
enum { TRY, ASYNC, BLOCKING, TIERS };

struct scene {
    llcl_context_t *context;
    struct shared *theirs, *mine;
    uint32_t peer, flags;
    size_t size; /* of what has a size */
    llcl_completion_t on_local, on_complete;
};

#define CALL(name)                                                                                         \
    (params.peer = in->peer, params.flags = in->flags, params.on_complete = in->on_complete,               \
     tier == BLOCKING ? llcl_##name(in->context, &params)                                                  \
     : tier == ASYNC  ? llcl_##name##_async(in->context, &params)                                          \
                      : llcl_try_##name##_async(in->context, &params))

/* Each operation leaves the 8 bytes of `value` where `seen` looks: at the peer, or here for those
 * that read. */
static llcl_status_t post(struct scene *in, int operation, int tier, uint64_t value)
{
    llcl_local_t here = llcl_region_local(in->mine->region, 0);
    llcl_remote_t there = remote_at(in->theirs, in->peer, 4096 * llcl_rank(in->context));
    llcl_remote_t word = there;
    word.offset += 1024;
    switch (operation) {
        case READ: {
            llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
            params.source = there;
            params.destination = here;
            params.size = in->size;
            return CALL(read);
        }
        case WRITE: {
            llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
            params.source = here;
            params.destination = there;
            params.size = in->size;
            params.on_local = in->on_local;
            return CALL(write);
        }
        case SIGNAL: {
            llcl_write_signal_params_t params = LLCL_WRITE_SIGNAL_PARAMS_INIT;
            params.source = here;
            params.destination = there;
            params.size = in->size;
            params.signal = word;
            params.signal_op = LLCL_SIGNAL_SET;
            params.signal_value = value;
            params.on_local = in->on_local;
            return CALL(write_signal);
        }
        case VALUE: {
            llcl_write_value_params_t params = LLCL_WRITE_VALUE_PARAMS_INIT;
            params.destination = there;
            params.value = value;
            params.size = 8;
            return CALL(write_value);
        }
        case SMALL: {
            llcl_write_small_params_t params = LLCL_WRITE_SMALL_PARAMS_INIT;
            params.destination = there;
            params.source = in->mine->bytes;
            params.size = 8;
            return CALL(write_small);
        }
        case ATOMIC: {
            llcl_atomic_params_t params = LLCL_ATOMIC_PARAMS_INIT;
            params.target = there;
            params.op = LLCL_OP_STORE;
            params.type = LLCL_TYPE_U64;
            params.operand = value;
            return CALL(atomic);
        }
        case FETCH_ADD: {
            llcl_fetch_add_params_t params = LLCL_FETCH_ADD_PARAMS_INIT;
            params.target = there;
            params.operand = value;
            return CALL(fetch_add);
        }
        case SWAP: {
            llcl_compare_swap_params_t params = LLCL_COMPARE_SWAP_PARAMS_INIT;
            params.target = there;
            params.desired = value;
            return CALL(compare_swap);
        }
        case STRIDED_READ:
        case STRIDED_WRITE: {
            llcl_strided_params_t params = LLCL_STRIDED_PARAMS_INIT;
            params.local = here;
            params.remote = there;
            params.size = 8;
            params.dimensions = 1;
            params.extents[0] = 3;
            params.local_strides[0] = params.remote_strides[0] = 64;
            return operation == STRIDED_READ ? CALL(read_strided) : CALL(write_strided);
        }
        default: {
            llcl_vector_params_t params = LLCL_VECTOR_PARAMS_INIT;
            llcl_local_span_t local = {here, in->size};
            llcl_remote_span_t remote = {there, in->size};
            params.locals = &local;
            params.remotes = &remote;
            params.local_count = params.remote_count = 1;
            return operation == READV ? CALL(readv) : CALL(writev);
        }
    }
}

static int reads(int operation)
{
    return operation == READ || operation == STRIDED_READ || operation == READV;
}

/* The word of this rank at the peer, by operations without the flag. */
static uint64_t there(struct scene *in, const uint64_t *set)
{
    uint64_t seen = 0;
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    read.peer = write.peer = in->peer;
    read.source = write.destination = remote_at(in->theirs, in->peer, 4096 * llcl_rank(in->context));
    read.destination = llcl_local_address(&seen);
    write.source = llcl_local_address(set);
    read.size = write.size = 8;
    if (set)
        CHECK_OK(llcl_write(in->context, &write));
    else
        CHECK_OK(llcl_read(in->context, &read));
    return seen;
}

static void one(struct scene *in, int operation, int tier, uint64_t value)
{
    static const uint64_t zero = 0;
    struct tally tally = {0, 0, 0};
    uint64_t local = 0, completions;
    llcl_status_t status;
    int never = tier == BLOCKING || test_mode_is("offload") || (in->flags & LLCL_FLAG_DEFER);
    int at_once = !never && is_near(in->context, in->peer) &&
                  (in->theirs->kind == ALLOCATED || in->peer == llcl_rank(in->context));
    /* The right answer stands at the source before. */
    there(in, reads(operation) ? &value : &zero);
    in->mine->words[0] = reads(operation) ? 0 : value;
    in->on_complete = tier == BLOCKING ? llcl_no_completion() : llcl_callback(tally_fire, &tally);
    in->on_local = tier == BLOCKING || operation > SIGNAL ? llcl_no_completion() : llcl_add_on(&local);
    completions = tier == BLOCKING ? 0 : 1;
    while ((status = post(in, operation, tier, value)) > 0 && status != LLCL_DONE)
        sched_yield();
    if (never || status != LLCL_DONE)
        CHECK_OK(status);
    if (at_once)
        CHECK_STATUS(status, LLCL_DONE);
    if (status == LLCL_OK)
        AWAIT(&tally.fired, completions);
    CHECK_EQUAL(reads(operation) ? in->mine->words[0] : there(in, NULL), value);
    CHECK_OK(llcl_flush(in->context, in->peer));
    CHECK_EQUAL(tally.fired, status == LLCL_DONE ? 0 : completions);
    CHECK_EQUAL(tally.failed, 0);
    CHECK_EQUAL(local, (operation == WRITE || operation == SIGNAL) && status == LLCL_OK ? completions : 0);
}

/* A completion of no kind is refused also where it would not fire, by every operation and in every
 * tier; nothing moves. */
static void no_kind(struct scene *in)
{
    static const uint64_t zero = 0;
    int operation, tier, f;
    for (operation = 0; operation < OPERATIONS; operation++)
        for (tier = 0; tier < TIERS; tier++)
            for (f = 0; f < 4; f++) {
                llcl_completion_t wrong = llcl_no_completion(), none = llcl_no_completion();
                int local = f & 1 && (operation == WRITE || operation == SIGNAL);
                wrong.kind = LLCL_COMPLETE_ADD + 1;
                if (operation % 2)
                    wrong.kind = UINT32_MAX;
                in->flags = f & 2 ? 0 : LLCL_FLAG_DONE;
                in->size = 8;
                in->on_local = local ? wrong : none;
                in->on_complete = local ? none : wrong;
                there(in, &zero);
                in->mine->words[0] = 7;
                CHECK_STATUS(post(in, operation, tier, 9), LLCL_ERR_INVALID);
                if (tier == BLOCKING) {
                    CHECK(strstr(llcl_last_error(), "expected llcl_no_completion()") != NULL);
                } else {
                    CHECK(strstr(llcl_last_error(), local ? "on_local.kind is " : "on_complete.kind is ") != NULL);
                    CHECK(strstr(llcl_last_error(), "expected one of LLCL_COMPLETE_*") != NULL);
                }
                CHECK_EQUAL(there(in, NULL), 0);
                CHECK_EQUAL(in->mine->words[0], 7);
            }
}

/* What is refused, with the flag and without it. */
static void malformed(struct scene *in)
{
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    read.peer = in->peer;
    read.source = remote_at(in->theirs, in->peer, 0);
    read.destination = llcl_region_local(in->mine->region, 0);
    read.size = 8;
    read.on_complete.kind = 99;
    CHECK_STATUS(llcl_try_read_async(in->context, &read), LLCL_ERR_INVALID);
    read.flags = LLCL_FLAG_DONE | LLCL_FLAG_DEFER;
    CHECK_STATUS(llcl_try_read_async(in->context, &read), LLCL_ERR_INVALID);
    read.flags = 8;
    read.on_complete = llcl_no_completion();
    CHECK_STATUS(llcl_try_read_async(in->context, &read), LLCL_ERR_INVALID);
}

/* Messages have no such flag: their end is never known in the call. */
static void message(llcl_context_t *context)
{
    llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
    am.peer = 0;
    am.flags = LLCL_FLAG_DONE;
    CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_INVALID);
}

static void wakes(struct scene *in)
{
    llcl_context_t *context = in->context;
    uint32_t me = llcl_rank(context), ranks = llcl_size(context);
    uint64_t *word = in->theirs->words + 256;
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    llcl_status_t status;
    if (ranks > 1 && me == 0)
        CHECK_OK(llcl_wait_word(context, word, 5, TEST_PATIENCE_NS));
    if (me != 1)
        return;
    sleep_ms(20); /* it most likely sleeps by now; else the test is weaker, and not wrong */
    write.peer = 0;
    write.destination = remote_at(in->theirs, 0, 2048);
    write.value = 5;
    write.size = 8;
    write.flags = LLCL_FLAG_DONE;
    while ((status = llcl_try_write_value_async(context, &write)) > 0 && status != LLCL_DONE)
        sched_yield();
    CHECK(status == LLCL_OK || status == LLCL_DONE);
}

static void run(llcl_context_t *context)
{
    static const size_t sizes[] = {8, 24};
    static const uint32_t flags[] = {LLCL_FLAG_DONE, LLCL_FLAG_DONE | LLCL_FLAG_DEFER};
    uint32_t ranks = llcl_size(context), step, f, s, kind;
    uint64_t value = 1;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared theirs, mine;
        struct scene in = {0};
        share(context, (int)kind, 4096 * ranks, &theirs);
        region_make(context, ALLOCATED, 4096, &mine);
        in.context = context;
        in.theirs = &theirs;
        in.mine = &mine;
        for (step = 0; step < ranks; step++) {
            int operation, tier;
            in.peer = (llcl_rank(context) + step) % ranks;
            for (operation = 0; operation < OPERATIONS; operation++)
                for (tier = 0; tier < TIERS; tier++)
                    for (f = 0; f < 2; f++)
                        for (s = 0; s < 2; s++) {
                            in.flags = flags[f];
                            in.size = sizes[s];
                            one(&in, operation, tier, ++value);
                        }
            malformed(&in);
            no_kind(&in);
        }
        fence(context);
        if (kind == ALLOCATED)
            wakes(&in);
        share_end(context, &theirs);
        region_drop(&mine);
    }
    message(context);
}

TEST_MAIN(run)
