/* One rank of three starts a round and is then busy: it does not call the library, or is even
 * stopped. The other ranks must finish the round meanwhile. The busy rank continues only after they
 * have announced this. */
#ifndef COLL_BUSY_H
#define COLL_BUSY_H
#include "coll.h"

struct busy {
    llcl_context_t *context;
    struct coll_memory memory;
    /* Counters. 0: rounds that the busy rank has started; 1 and 2: ranks that have finished. */
    struct shared words;
    uint64_t started, through, second_through; /* the values that the counters must reach */
};

static inline void busy_tell(struct busy *busy, uint32_t rank, uint64_t word)
{
    llcl_atomic_params_t atomic = {0};
    atomic.peer = rank;
    atomic.target = remote_at(&busy->words, rank, 8 * word);
    atomic.op = LLCL_OP_ADD;
    atomic.type = LLCL_TYPE_U64;
    atomic.operand = 1;
    CHECK_OK(llcl_atomic(busy->context, &atomic));
}

static inline void busy_begin(llcl_context_t *context, struct busy *busy)
{
    memset(busy, 0, sizeof *busy);
    busy->context = context;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 18, &busy->memory);
    share(context, ALLOCATED, 64, &busy->words);
}

static inline void busy_end(struct busy *busy)
{
    share_end(busy->context, &busy->words);
    region_drop(&busy->memory.shared);
}

/* Announces to the other ranks that the round is started. Adds to `through` the ranks that must
 * finish it. */
static inline void busy_announce(struct busy *busy, uint32_t me, uint32_t ranks)
{
    uint32_t r;
    busy->through += ranks - 1;
    for (r = 0; r < ranks; r++)
        if (r != me)
            busy_tell(busy, r, 0);
}

/* Computes until a word has reached a number, without a call of the library. */
static inline void busy_compute_until(const uint64_t *word, uint64_t at_least)
{
    volatile double number = 1.0;
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    while (word_get(word) < at_least && now_ns() < end)
        number = number * 1.0000001 + 0.5;
    CHECK_EQUAL(word_get(word), at_least);
}

static inline void busy_compute_for(int64_t span)
{
    volatile double number = 1.0;
    int64_t end = now_ns() + span;
    while (now_ns() < end)
        number = number * 1.0000001 + 0.5;
}

/* Computes until the other ranks have announced that they have finished. */
static inline void busy_compute(struct busy *busy)
{
    busy_compute_until(&busy->words.words[1], busy->through);
}

struct stuck {
    uint64_t inside, release;
};

/* A callback that occupies the progress thread, in each round until `release` counts the round. */
static inline void stay(void *data, llcl_status_t status)
{
    struct stuck *stuck = data;
    uint64_t round = word_get(&stuck->inside) + 1;
    CHECK_OK(status);
    word_set(&stuck->inside, round);
    AWAIT(&stuck->release, round);
}

#endif
