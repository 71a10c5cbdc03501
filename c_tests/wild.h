/* All one-sided operations in all tiers (try, async, blocking) behind one signature. A rule that
 * holds for all of them, as "a stale key is refused", then needs only one test. */
#ifndef WILD_H
#define WILD_H
#include "shared.h"

enum wild_operation {
    WILD_READ,
    WILD_WRITE,
    WILD_VALUE,
    WILD_SMALL,
    WILD_SIGNAL,
    WILD_ATOMIC,
    WILD_FETCH_ADD,
    WILD_COMPARE_SWAP,
    WILD_OPERATIONS
};

enum wild_tier { TIER_TRY, TIER_ASYNC, TIER_BLOCKING, TIERS };

static inline const char *wild_name(int operation)
{
    static const char *const names[] = {"read",         "write",  "write_value", "write_small",
                                        "write_signal", "atomic", "fetch_add",   "compare_swap"};
    return names[operation];
}

/* An operation on 8 bytes between `local` or `memory` and `remote`. The operations that take a
 * pointer use `memory`. `signal` is the signal word of WILD_SIGNAL. */
struct wild {
    int operation;
    int tier;
    uint32_t peer;
    uint32_t flags;
    llcl_local_t local;
    uint64_t *memory;
    llcl_remote_t remote;
    llcl_remote_t signal;
    llcl_completion_t on_complete; /* not used by the blocking tier */
};

#define WILD_TIERS(name, params)                              \
    switch (wild->tier) {                                     \
    case TIER_TRY:                                            \
        return llcl_try_##name##_async(context, &(params));   \
    case TIER_ASYNC:                                          \
        return llcl_##name##_async(context, &(params));       \
    default:                                                  \
        return llcl_##name(context, &(params));               \
    }

static inline llcl_status_t wild_read(llcl_context_t *context, const struct wild *wild,
                                      llcl_completion_t done)
{
    llcl_read_params_t read = {0};
    read.peer = wild->peer;
    read.flags = wild->flags;
    read.source = wild->remote;
    read.destination = wild->local;
    read.size = 8;
    read.on_complete = done;
    WILD_TIERS(read, read)
}

static inline llcl_status_t wild_write(llcl_context_t *context, const struct wild *wild,
                                       llcl_completion_t done)
{
    llcl_write_params_t write = {0};
    write.peer = wild->peer;
    write.flags = wild->flags;
    write.source = wild->local;
    write.destination = wild->remote;
    write.size = 8;
    write.on_complete = done;
    WILD_TIERS(write, write)
}

static inline llcl_status_t wild_value(llcl_context_t *context, const struct wild *wild,
                                       llcl_completion_t done)
{
    llcl_write_value_params_t value = {0};
    value.peer = wild->peer;
    value.flags = wild->flags;
    value.destination = wild->remote;
    value.value = *wild->memory;
    value.size = 8;
    value.on_complete = done;
    WILD_TIERS(write_value, value)
}

static inline llcl_status_t wild_small(llcl_context_t *context, const struct wild *wild,
                                       llcl_completion_t done)
{
    llcl_write_small_params_t small = {0};
    small.peer = wild->peer;
    small.flags = wild->flags;
    small.source = wild->memory;
    small.destination = wild->remote;
    small.size = 8;
    small.on_complete = done;
    WILD_TIERS(write_small, small)
}

static inline llcl_status_t wild_signal(llcl_context_t *context, const struct wild *wild,
                                        llcl_completion_t done)
{
    llcl_write_signal_params_t signal = {0};
    signal.peer = wild->peer;
    signal.flags = wild->flags;
    signal.source = wild->local;
    signal.destination = wild->remote;
    signal.size = 8;
    signal.signal = wild->signal;
    signal.signal_value = 1;
    signal.signal_op = LLCL_SIGNAL_ADD;
    signal.on_complete = done;
    WILD_TIERS(write_signal, signal)
}

static inline llcl_status_t wild_atomic(llcl_context_t *context, const struct wild *wild,
                                        llcl_completion_t done)
{
    llcl_atomic_params_t atomic = {0};
    atomic.peer = wild->peer;
    atomic.flags = wild->flags;
    atomic.target = wild->remote;
    atomic.op = LLCL_OP_ADD;
    atomic.type = LLCL_TYPE_U64;
    atomic.operand = 1;
    atomic.on_complete = done;
    WILD_TIERS(atomic, atomic)
}

static inline llcl_status_t wild_fetch_add(llcl_context_t *context, const struct wild *wild,
                                           llcl_completion_t done)
{
    llcl_fetch_add_params_t add = {0};
    add.peer = wild->peer;
    add.flags = wild->flags;
    add.target = wild->remote;
    add.operand = 1;
    add.result = wild->memory;
    add.on_complete = done;
    WILD_TIERS(fetch_add, add)
}

static inline llcl_status_t wild_compare_swap(llcl_context_t *context, const struct wild *wild,
                                              llcl_completion_t done)
{
    llcl_compare_swap_params_t swap = {0};
    swap.peer = wild->peer;
    swap.flags = wild->flags;
    swap.target = wild->remote;
    swap.compare = 0;
    swap.desired = 1;
    swap.result = wild->memory;
    swap.on_complete = done;
    WILD_TIERS(compare_swap, swap)
}

static inline llcl_status_t wild_post(llcl_context_t *context, const struct wild *wild)
{
    static llcl_status_t (*const operations[])(llcl_context_t *, const struct wild *,
                                               llcl_completion_t) = {
        wild_read,   wild_write,  wild_value,     wild_small,
        wild_signal, wild_atomic, wild_fetch_add, wild_compare_swap};
    llcl_completion_t done = wild->tier == TIER_BLOCKING ? llcl_no_completion() : wild->on_complete;
    return operations[wild->operation](context, wild, done);
}

/* Checks that every operation in every tier fails with `expected`: either the call returns it,
 * or the completion reports it. The completion of a refused request must never fire, and the
 * message of the refusal must begin with the operation's name. */
#define WILD_REFUSED(context, wild, expected) \
    wild_refused(__FILE__, __LINE__, (context), (wild), (expected))

static inline void wild_refused(const char *file, int line, llcl_context_t *context,
                                struct wild *wild, llcl_status_t expected)
{
    for (wild->operation = 0; wild->operation < WILD_OPERATIONS; wild->operation++) {
        for (wild->tier = 0; wild->tier < TIERS; wild->tier++) {
            struct tally tally = {0, 0, 0};
            llcl_status_t status;
            wild->on_complete = count_in(&tally);
            while ((status = wild_post(context, wild)) > 0)
                sched_yield();
            if (status == LLCL_OK && wild->tier != TIER_BLOCKING) {
                CHECK(word_reaches(&tally.fired, 1, TEST_PATIENCE_NS));
                status = (llcl_status_t)tally.last;
            } else {
                char name[32];
                snprintf(name, sizeof name, "llcl_%s: ", wild_name(wild->operation));
                CHECK_EQUAL(word_get(&tally.fired), 0);
                CHECK(status == LLCL_OK || strncmp(llcl_last_error(), name, strlen(name)) == 0);
            }
            test_status(file, line, wild_name(wild->operation), "the refusal", status, expected);
        }
    }
}

/* Checks that inside a callback or a handler the forms that may wait are refused. */
static inline void wild_must_not_wait(llcl_context_t *context, struct wild *wild)
{
    wild->on_complete = llcl_no_completion();
    for (wild->operation = 0; wild->operation < WILD_OPERATIONS; wild->operation++) {
        wild->tier = TIER_ASYNC;
        CHECK_STATUS(wild_post(context, wild), LLCL_ERR_STATE);
        CHECK(strstr(llcl_last_error(), "use its try form") != NULL);
        wild->tier = TIER_BLOCKING;
        CHECK_STATUS(wild_post(context, wild), LLCL_ERR_STATE);
        CHECK(strstr(llcl_last_error(), "use its try form") != NULL);
    }
}

/* A box of one piece of 8 bytes. */
static inline llcl_strided_params_t box_of_a_word(llcl_local_t local, llcl_remote_t remote)
{
    llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
    box.local = local;
    box.remote = remote;
    box.size = 8;
    box.dimensions = 1;
    box.extents[0] = 1;
    return box;
}

#endif
