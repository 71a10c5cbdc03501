/* Shared by the tests of collectives. Runs a case of any operation on buffers with guard bytes
 * around them, and compares the result with the reference. */
#ifndef COLL_H
#define COLL_H
#include "coll_reference.h"

#define COLL_MOST 16u  /* ranks */
#define COLL_GUARD 64u /* bytes on either side of a buffer */
#define COLL_EMPTY 0xe1

/* A region of this rank, in which buffers are placed. */
struct coll_memory {
    struct shared shared;
    size_t used;
};

struct coll_side {
    unsigned char *bytes, *shadow; /* with the guards */
    size_t size;                   /* of the buffer, without the guards */
    llcl_local_t local;
};

struct coll_run {
    struct coll_case asked;
    uint32_t me, ranks;
    uint64_t round;
    llcl_coll_t *plan;
    llcl_coll_params_t params;
    struct coll_side send, receive;
    uint64_t send_counts[COLL_MOST], send_offsets[COLL_MOST];
    uint64_t receive_counts[COLL_MOST], receive_offsets[COLL_MOST];
};

/* Element i of the combination of ranks 0 to `last`. */
UNCHECKED static inline void coll_combined(const struct coll_run *run, uint32_t last, uint64_t i, void *element)
{
    const struct coll_case *asked = &run->asked;
    unsigned char other[COLL_WIDEST];
    uint32_t from;
    coll_element(asked, run->round, 0, 0, i, element);
    for (from = 1; from <= last; from++) {
        coll_element(asked, run->round, from, 0, i, other);
        coll_combine(asked->type, asked->op, element, other);
    }
}

/* ---- the blocks of the buffers ---- */

/* Places the blocks of a v form's buffer in a pseudo-random order with gaps. Returns the elements
 * from the beginning of the buffer to the end of the last block. */
static inline uint64_t coll_place(const struct coll_run *run, uint64_t salt, const uint64_t *counts,
                                  uint64_t *offsets)
{
    uint64_t dice = coll_mix(run->asked.seed + salt * 13 + run->me), at = dice % 3;
    uint32_t step = dice & 8 ? 1 : run->ranks - 1, k;
    for (k = 0; k < run->ranks; k++) {
        uint32_t peer = (uint32_t)((k * step + dice / 16) % run->ranks);
        if (run->ranks == 1)
            peer = 0;
        offsets[peer] = at;
        at += counts[peer] + (dice >> (k % 16 + 20)) % 3;
    }
    return at;
}

static inline int coll_is_root(const struct coll_run *run)
{
    return run->me == run->asked.root;
}

static inline int coll_in_place_here(const struct coll_run *run)
{
    int rooted = run->asked.operation == REDUCE || run->asked.operation == GATHER ||
                 run->asked.operation == SCATTER;
    return run->asked.in_place && (!rooted || coll_is_root(run));
}

/* The elements of this rank's input and output; 0 if the rank has no such buffer. */
static inline void coll_spans(struct coll_run *run, uint64_t *send, uint64_t *receive)
{
    const struct coll_case *asked = &run->asked;
    uint64_t count = asked->count, whole = 0, mine = coll_block(asked, run->me, run->me);
    uint32_t p;
    for (p = 0; p < run->ranks; p++) {
        run->send_counts[p] = coll_block(asked, run->me, p);
        run->receive_counts[p] = coll_block(asked, p, run->me);
        if (asked->operation == REDUCE_SCATTER)
            run->receive_counts[p] = run->send_counts[p];
        run->send_offsets[p] = whole; /* one after the other */
        run->receive_offsets[p] = p * count;
        whole += run->send_counts[p];
    }
    *send = *receive = 0;
    switch (asked->operation) {
    case BARRIER: return;
    case BROADCAST: *receive = count; return;
    case REDUCE: *send = count; *receive = coll_is_root(run) ? count : 0; break;
    case ALLREDUCE: case SCAN: case EXSCAN: *send = *receive = count; break;
    case GATHER: case ALLGATHER:
        *send = mine;
        if (asked->operation == ALLGATHER || coll_is_root(run))
            *receive = asked->varied ? coll_place(run, 1, run->receive_counts, run->receive_offsets)
                                     : whole;
        break;
    case SCATTER:
        *receive = mine;
        if (coll_is_root(run))
            *send = asked->varied ? coll_place(run, 2, run->send_counts, run->send_offsets) : whole;
        break;
    case ALLTOALL:
        *send = asked->varied ? coll_place(run, 3, run->send_counts, run->send_offsets) : whole;
        *receive = asked->varied ? coll_place(run, 4, run->receive_counts, run->receive_offsets) : whole;
        break;
    default: /* REDUCE_SCATTER */
        *send = whole;
        *receive = asked->in_place ? whole : mine;
        break;
    }
    if (coll_in_place_here(run)) {
        if (asked->operation == SCATTER)
            *receive = 0;
        else
            *send = 0;
    }
}

/* ---- memory ---- */

static inline void coll_memory_make(llcl_context_t *context, int kind, size_t size,
                                    struct coll_memory *memory)
{
    region_make(context, kind, size, &memory->shared);
    memory->used = 0;
}

static inline void coll_side_make(struct coll_side *side, struct coll_memory *memory, size_t size,
                                  size_t skew)
{
    size_t whole = size + 2 * COLL_GUARD, at = (memory->used + 63) / 64 * 64 + skew;
    CHECK(at + whole <= memory->shared.size);
    memory->used = at + whole;
    side->size = size;
    side->bytes = memory->shared.bytes + at;
    side->shadow = malloc(whole);
    CHECK(side->shadow != NULL);
    memset(side->bytes, COLL_EMPTY, whole);
    memset(side->shadow, COLL_EMPTY, whole);
    side->local = llcl_region_local(memory->shared.region, at + COLL_GUARD);
}

static inline unsigned char *coll_bytes(struct coll_side *side)
{
    return side->bytes + COLL_GUARD;
}

static inline unsigned char *coll_shadow(struct coll_side *side)
{
    return side->shadow + COLL_GUARD;
}

/* ---- making plans ---- */

static inline llcl_team_t *coll_world(llcl_context_t *context)
{
    llcl_team_t *team = NULL;
    CHECK_OK(llcl_team_world(context, &team));
    CHECK(team != NULL);
    return team;
}

/* Whether some ranks share no memory. Algorithms that read the memory of peers are refused then. */
static inline int coll_is_posted(llcl_context_t *context)
{
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    uint32_t peer, posted = 0;
    for (peer = 0; peer < llcl_size(context); peer++) {
        CHECK_OK(llcl_query_peer(context, peer, &info));
        posted |= info.transport == LLCL_TRANSPORT_WIRE;
    }
    return (int)posted;
}

/* Sets the tables of a v form: those that the operation uses, and for odd seeds also the others. */
static inline void coll_prepare_blocks(struct coll_run *run)
{
    const struct coll_case *asked = &run->asked;
    llcl_coll_params_t *params = &run->params;
    int all = asked->seed % 2 == 1, operation = asked->operation;
    int root = coll_is_root(run);
    params->count = coll_block(asked, run->me, run->me);
    if (all || (operation == ALLTOALL && !asked->in_place) || (operation == SCATTER && root)) {
        params->send_counts = run->send_counts;
        params->send_offsets = run->send_offsets;
    }
    if (all || (operation != SCATTER && (operation != GATHER || root)))
        params->receive_counts = run->receive_counts;
    if (all || (params->receive_counts && operation != REDUCE_SCATTER))
        params->receive_offsets = run->receive_offsets;
    /* Only gather, scatter and allgather use `count`. */
    if (!all && (operation == ALLTOALL || operation == REDUCE_SCATTER))
        params->count = UINT64_MAX;
}

/* Makes the parameters and buffers of a case, but no plan. */
static inline void coll_prepare(struct coll_run *run, const struct coll_case *asked,
                                struct coll_memory *send, struct coll_memory *receive)
{
    llcl_coll_params_t *params = &run->params;
    size_t width = coll_width(asked->type);
    uint64_t send_span, receive_span;
    memset(run, 0, sizeof *run);
    run->asked = *asked;
    run->me = llcl_team_rank(asked->team);
    run->ranks = llcl_team_size(asked->team);
    CHECK(run->me < run->ranks && run->ranks <= COLL_MOST);
    coll_spans(run, &send_span, &receive_span);
    coll_side_make(&run->send, send, send_span * width, asked->seed % 5 == 4 ? 3 : 0);
    coll_side_make(&run->receive, receive, receive_span * width, asked->seed % 7 == 6 ? 1 : 0);
    params->team = asked->team;
    /* For odd seeds a buffer that the operation does not use is passed as well: it must not be
     * touched. */
    if (send_span || asked->seed % 2)
        params->send = run->send.local;
    if (receive_span || asked->seed % 2)
        params->receive = run->receive.local;
    params->count = asked->count;
    params->type = asked->type;
    if (asked->type == LLCL_TYPE_BYTES)
        params->element_size = COLL_BYTES;
    params->op = asked->op;
    params->root = asked->root;
    params->engine = asked->engine;
    params->flags = asked->in_place ? LLCL_COLL_IN_PLACE : 0;
    params->algorithm = asked->algorithm;
    if (asked->op == LLCL_OP_USER)
        params->function = asked->type == LLCL_TYPE_BYTES ? coll_user_bytes : coll_user;
    if (asked->varied)
        coll_prepare_blocks(run);
}

static inline llcl_status_t coll_make(struct coll_run *run, const struct coll_case *asked,
                                      struct coll_memory *send, struct coll_memory *receive)
{
    coll_prepare(run, asked, send, receive);
    return coll_init(asked->operation, asked->varied, &run->params, &run->plan);
}

/* ---- a round ---- */

UNCHECKED static inline void coll_store(struct coll_run *run, struct coll_side *side, uint32_t to, uint64_t at,
                              uint64_t count)
{
    size_t width = coll_width(run->asked.type);
    uint64_t i;
    for (i = 0; i < count; i++)
        coll_element(&run->asked, run->round, run->me, to, i, coll_shadow(side) + (at + i) * width);
}

/* Fills the inputs with new contents for the next round, and clears the outputs. */
static inline void coll_fill(struct coll_run *run)
{
    struct coll_side *input = coll_in_place_here(run) && run->asked.operation != SCATTER ? &run->receive
                                                                                         : &run->send;
    uint64_t *offsets = input == &run->receive ? run->receive_offsets : run->send_offsets;
    uint64_t total = 0;
    uint32_t p;
    run->round++;
    memset(run->send.shadow, COLL_EMPTY, run->send.size + 2 * COLL_GUARD);
    memset(run->receive.shadow, COLL_EMPTY, run->receive.size + 2 * COLL_GUARD);
    for (p = 0; p < run->ranks; p++)
        total += run->send_counts[p];
    switch (run->asked.operation) {
    case BARRIER: break;
    case BROADCAST:
        if (coll_is_root(run))
            coll_store(run, &run->receive, 0, 0, run->asked.count);
        break;
    case GATHER: case ALLGATHER:
        coll_store(run, input, 0, input == &run->receive ? offsets[run->me] : 0,
                   coll_block(&run->asked, run->me, run->me));
        break;
    case SCATTER: case ALLTOALL:
        for (p = 0; p < run->ranks; p++)
            if (run->asked.operation == ALLTOALL || coll_is_root(run))
                coll_store(run, input, p, offsets[p], run->send_counts[p]);
        break;
    case REDUCE_SCATTER: coll_store(run, input, 0, 0, total); break;
    default: coll_store(run, input, 0, 0, run->asked.count); break;
    }
    memcpy(run->send.bytes, run->send.shadow, run->send.size + 2 * COLL_GUARD);
    memcpy(run->receive.bytes, run->receive.shadow, run->receive.size + 2 * COLL_GUARD);
}

/* Sets the shadow to the block of rank `from` for rank `to`, at element `at` of the output. */
UNCHECKED static inline void coll_expect_block(struct coll_run *run, uint32_t from, uint32_t to, uint64_t at,
                                     uint64_t count)
{
    size_t width = coll_width(run->asked.type);
    uint64_t i;
    for (i = 0; i < count; i++)
        coll_element(&run->asked, run->round, from, to, i, coll_shadow(&run->receive) + (at + i) * width);
}

/* Sets the shadow to the expected output. */
UNCHECKED static inline void coll_expect(struct coll_run *run)
{
    const struct coll_case *asked = &run->asked;
    unsigned char *to = coll_shadow(&run->receive);
    size_t width = coll_width(asked->type);
    uint32_t p, last = asked->operation == SCAN ? run->me : run->ranks - 1;
    uint64_t i, first = 0, count = asked->count;
    switch (asked->operation) {
    case BARRIER: return;
    case BROADCAST: coll_expect_block(run, asked->root, 0, 0, count); return;
    case GATHER: case ALLGATHER: case ALLTOALL:
        if (asked->operation == GATHER && !coll_is_root(run))
            return;
        for (p = 0; p < run->ranks; p++)
            coll_expect_block(run, p, asked->operation == ALLTOALL ? run->me : 0,
                              run->receive_offsets[p], run->receive_counts[p]);
        return;
    case SCATTER:
        if (!coll_in_place_here(run))
            coll_expect_block(run, asked->root, run->me, 0, coll_block(asked, asked->root, run->me));
        return;
    case REDUCE_SCATTER:
        count = run->receive_counts[run->me];
        for (p = 0; p < run->me; p++)
            first += run->receive_counts[p];
        /* In place the rest of the buffer is undefined. */
        if (asked->in_place)
            memcpy(to, coll_bytes(&run->receive), run->receive.size);
        break;
    case REDUCE:
        if (!coll_is_root(run))
            return;
        break;
    case EXSCAN:
        if (run->me == 0)
            return;
        last = run->me - 1;
        break;
    default: break;
    }
    for (i = 0; i < count; i++)
        coll_combined(run, last, first + i, to + i * width);
}

static inline void coll_compare(struct coll_run *run, struct coll_side *side, const char *what)
{
    const struct coll_case *asked = &run->asked;
    llcl_coll_info_t info;
    size_t i, whole = side->size + 2 * COLL_GUARD;
    if (memcmp(side->bytes, side->shadow, whole) == 0)
        return;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (run->plan)
        llcl_coll_query(run->plan, &info);
    for (i = 0; side->bytes[i] == side->shadow[i]; i++)
        ;
    fprintf(stderr, "%s%s, %s, rank %u of %u, root %u, %llu elements of %u bytes, type %u, op %u%s, "
                    "seed %llu, round %llu: byte %ld of the %s (%zu bytes) is 0x%02x, expected 0x%02x\n",
            coll_operations[asked->operation].name, asked->varied ? "v" : "",
            info.algorithm ? info.algorithm : "(no plan)", run->me, run->ranks, asked->root,
            (unsigned long long)asked->count, (unsigned)coll_width(asked->type), asked->type, asked->op,
            asked->in_place ? ", in place" : "", (unsigned long long)asked->seed,
            (unsigned long long)run->round, (long)i - (long)COLL_GUARD, what, side->size, side->bytes[i],
            side->shadow[i]);
    test_fail(__FILE__, __LINE__, "wrong result");
}

static inline void coll_verify(struct coll_run *run)
{
    coll_expect(run);
    coll_compare(run, &run->receive, "output");
    coll_compare(run, &run->send, "input");
}

static inline void coll_start(struct coll_run *run)
{
    coll_fill(run);
    CHECK_OK(llcl_coll_start(run->plan));
}

static inline void coll_finish(struct coll_run *run)
{
    CHECK_OK(llcl_coll_wait(run->plan, TEST_PATIENCE_NS));
    coll_verify(run);
}

static inline void coll_rounds(struct coll_run *run, unsigned rounds)
{
    for (; rounds > 0; rounds--) {
        coll_start(run);
        coll_finish(run);
    }
}

static inline void coll_forget(struct coll_run *run)
{
    free(run->send.shadow);
    free(run->receive.shadow);
}

static inline void coll_drop(struct coll_run *run)
{
    CHECK_OK(llcl_coll_free(run->plan));
    coll_forget(run);
}

/* Makes a plan, runs some rounds and frees the plan. Returns the status of making it.
 * Collective. */
static inline llcl_status_t coll_whole(const struct coll_case *asked, struct coll_memory *memory,
                                       unsigned rounds)
{
    struct coll_run run;
    size_t used = memory->used;
    llcl_status_t status = coll_make(&run, asked, memory, memory);
    if (status == LLCL_OK) {
        coll_rounds(&run, rounds);
        coll_drop(&run);
    } else {
        CHECK(run.plan == NULL);
        coll_forget(&run);
    }
    memory->used = used;
    return status;
}

/* Whether the test runs with this engine (LLCL_COLL_ENGINE). */
static inline int coll_engine_is(const char *name)
{
    const char *engine = getenv("LLCL_COLL_ENGINE");
    return strcmp(engine ? engine : "offload", name) == 0;
}

/* For the beginning of main(): sets a variable unless the set-up has set it. */
static inline void coll_default(const char *name, const char *value)
{
    CHECK(setenv(name, value, 0) == 0);
}

#endif
