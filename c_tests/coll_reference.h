/* The operations of collectives, and their expected results. These are computed element by element
 * from numbers that all ranks know. */
#ifndef COLL_REFERENCE_H
#define COLL_REFERENCE_H
#include "shared.h"

#include <math.h>

enum {
    BARRIER, BROADCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN,
    EXSCAN, OPERATIONS
};

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}

/* The name of an operation, and all its algorithms; coll_query.c compares them with the
 * library's. */
struct coll_operation {
    const char *name;
    int rooted, combines, has_varied;
    const char *const *algorithms; /* NULL after the last one */
};

static const struct coll_operation coll_operations[OPERATIONS] = {
    {"barrier", 0, 0, 0, NAMES("dissemination", "tree", "two_level")},
    {"broadcast", 1, 0, 0, NAMES("binomial", "chain", "kary", "trinaryx3", "scatter_allgather", "direct", "eager",
                              "two_level")},
    {"reduce", 1, 1, 0, NAMES("binomial", "direct", "eager", "two_level")},
    {"allreduce", 0, 1, 0, NAMES("recursive_doubling", "ring", "rabenseifner", "direct", "eager", "two_level")},
    {"gather", 1, 0, 1, NAMES("binomial", "direct", "eager")},
    {"scatter", 1, 0, 1, NAMES("binomial", "direct", "push", "eager")},
    {"allgather", 0, 0, 1, NAMES("ring", "recursive_doubling", "bruck", "direct", "eager", "two_level")},
    {"alltoall", 0, 0, 1, NAMES("pairwise", "bruck", "direct", "eager", "two_level")},
    {"reduce_scatter", 0, 1, 1, NAMES("ring", "direct", "pairwise", "eager", "two_level")},
    {"scan", 0, 1, 0, NAMES("recursive_doubling", "direct", "eager")},
    {"exscan", 0, 1, 0, NAMES("recursive_doubling", "direct", "eager")},
};

/* A case; it is equal at all ranks of the team. */
struct coll_case {
    llcl_team_t *team;
    int operation, varied, in_place;
    uint64_t count; /* elements of the vector or of a block; of the longest block of a v form */
    uint32_t type, op, root, engine;
    const char *algorithm; /* NULL: the library chooses */
    uint64_t seed;         /* determines the contents, and the blocks of a v form */
};

/* ---- the calls ---- */

static inline llcl_status_t coll_init(int operation, int varied, const llcl_coll_params_t *params,
                                      llcl_coll_t **plan)
{
    switch (operation) {
    case BARRIER: return llcl_barrier_init(params, plan);
    case BROADCAST: return llcl_broadcast_init(params, plan);
    case REDUCE: return llcl_reduce_init(params, plan);
    case ALLREDUCE: return llcl_allreduce_init(params, plan);
    case GATHER: return varied ? llcl_gatherv_init(params, plan) : llcl_gather_init(params, plan);
    case SCATTER: return varied ? llcl_scatterv_init(params, plan) : llcl_scatter_init(params, plan);
    case ALLGATHER:
        return varied ? llcl_allgatherv_init(params, plan) : llcl_allgather_init(params, plan);
    case ALLTOALL: return varied ? llcl_alltoallv_init(params, plan) : llcl_alltoall_init(params, plan);
    case REDUCE_SCATTER:
        return varied ? llcl_reduce_scatterv_init(params, plan) : llcl_reduce_scatter_init(params, plan);
    case SCAN: return llcl_scan_init(params, plan);
    default: return llcl_exscan_init(params, plan);
    }
}

static inline llcl_status_t coll_now(int operation, int varied, const llcl_coll_params_t *params)
{
    switch (operation) {
    case BARRIER: return llcl_team_barrier(params->team);
    case BROADCAST: return llcl_broadcast(params);
    case REDUCE: return llcl_reduce(params);
    case ALLREDUCE: return llcl_allreduce(params);
    case GATHER: return varied ? llcl_gatherv(params) : llcl_gather(params);
    case SCATTER: return varied ? llcl_scatterv(params) : llcl_scatter(params);
    case ALLGATHER: return varied ? llcl_allgatherv(params) : llcl_allgather(params);
    case ALLTOALL: return varied ? llcl_alltoallv(params) : llcl_alltoall(params);
    case REDUCE_SCATTER: return varied ? llcl_reduce_scatterv(params) : llcl_reduce_scatter(params);
    case SCAN: return llcl_scan(params);
    default: return llcl_exscan(params);
    }
}

static inline llcl_status_t coll_begin(int operation, int varied, const llcl_coll_params_t *params)
{
    switch (operation) {
    case BARRIER: return llcl_barrier_async(params);
    case BROADCAST: return llcl_broadcast_async(params);
    case REDUCE: return llcl_reduce_async(params);
    case ALLREDUCE: return llcl_allreduce_async(params);
    case GATHER: return varied ? llcl_gatherv_async(params) : llcl_gather_async(params);
    case SCATTER: return varied ? llcl_scatterv_async(params) : llcl_scatter_async(params);
    case ALLGATHER: return varied ? llcl_allgatherv_async(params) : llcl_allgather_async(params);
    case ALLTOALL: return varied ? llcl_alltoallv_async(params) : llcl_alltoall_async(params);
    case REDUCE_SCATTER:
        return varied ? llcl_reduce_scatterv_async(params) : llcl_reduce_scatter_async(params);
    case SCAN: return llcl_scan_async(params);
    default: return llcl_exscan_async(params);
    }
}

/* ---- numbers that all ranks know ---- */

UNCHECKED static inline uint64_t coll_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#define COLL_BYTES 24u  /* an element of LLCL_TYPE_BYTES: three maps of coll_compose() */
#define COLL_WIDEST 32u /* the widest element */

UNCHECKED static inline size_t coll_width(uint32_t type)
{
    switch (type) {
    case LLCL_TYPE_I8: case LLCL_TYPE_U8: case LLCL_TYPE_BOOL: return 1;
    case LLCL_TYPE_I16: case LLCL_TYPE_U16: case LLCL_TYPE_F16: case LLCL_TYPE_BF16: return 2;
    case LLCL_TYPE_I32: case LLCL_TYPE_U32: case LLCL_TYPE_F32: return 4;
    case LLCL_TYPE_BYTES: return COLL_BYTES;
    case LLCL_TYPE_LONG_DOUBLE_I32: return 32;
    case LLCL_TYPE_LONG_DOUBLE: case LLCL_TYPE_COMPLEX_F64: case LLCL_TYPE_F64_I32:
    case LLCL_TYPE_I64_I32: case LLCL_TYPE_I64_I64: case LLCL_TYPE_F64_I64: return 16;
    default: return 8;
    }
}

UNCHECKED static inline int coll_is_float(uint32_t type)
{
    return type == LLCL_TYPE_F32 || type == LLCL_TYPE_F64;
}

#include "coll_numbers.h"

/* Element i of the block that rank `from` has for rank `to`. The floating-point numbers are
 * chosen so that no order of additions or multiplications rounds. */
UNCHECKED static inline void coll_element(const struct coll_case *asked, uint64_t round, uint32_t from, uint32_t to,
                                uint64_t i, void *element)
{
    uint64_t raw = coll_mix(asked->seed + round * 1000003 + from * 7919 + to * 104729 + (i << 32));
    if (coll_operations[asked->operation].combines && coll_is_float(asked->type)) {
        double number = asked->op == LLCL_OP_PROD ? (raw % 3 ? 1.0 : raw % 2 ? -2.0 : 0.5)
                                                  : (double)(raw % 201) - 100.0;
        float small = (float)number;
        if (asked->type == LLCL_TYPE_F32)
            memcpy(element, &small, sizeof small);
        else
            memcpy(element, &number, sizeof number);
        return;
    }
    if (!coll_is_plain(asked->type)) {
        coll_number_element(asked->type, asked->op == LLCL_OP_PROD, raw, element);
        return;
    }
    memcpy(element, &raw, coll_width(asked->type)); /* the library needs a little-endian processor, too */
}

/* ---- the reference of the operations that combine: left = left op right ---- */

UNCHECKED static inline uint64_t coll_load(uint32_t type, const void *element)
{
    switch (type) {
    case LLCL_TYPE_I8: return (uint64_t)*(const int8_t *)element;
    case LLCL_TYPE_U8: return *(const uint8_t *)element;
    case LLCL_TYPE_I16: { int16_t x; memcpy(&x, element, 2); return (uint64_t)x; }
    case LLCL_TYPE_U16: { uint16_t x; memcpy(&x, element, 2); return x; }
    case LLCL_TYPE_I32: { int32_t x; memcpy(&x, element, 4); return (uint64_t)x; }
    case LLCL_TYPE_U32: { uint32_t x; memcpy(&x, element, 4); return x; }
    default: { uint64_t x; memcpy(&x, element, 8); return x; }
    }
}

/* The user's operation: composes two maps x -> a*x + b of 32-bit numbers. It does not commute. */
UNCHECKED static inline uint64_t coll_compose(uint64_t left, uint64_t right)
{
    uint32_t a = (uint32_t)(left >> 32), b = (uint32_t)left;
    uint32_t c = (uint32_t)(right >> 32), d = (uint32_t)right;
    return (uint64_t)(a * c) << 32 | (uint32_t)(b * c + d);
}

UNCHECKED static inline uint64_t coll_combine_integers(uint32_t type, uint32_t op, uint64_t left, uint64_t right)
{
    int is_signed = type == LLCL_TYPE_I8 || type == LLCL_TYPE_I16 || type == LLCL_TYPE_I32 ||
                    type == LLCL_TYPE_I64;
    int less = is_signed ? (int64_t)left < (int64_t)right : left < right;
    switch (op) {
    case LLCL_OP_ADD: return left + right;
    case LLCL_OP_PROD: return left * right;
    case LLCL_OP_AND: return left & right;
    case LLCL_OP_OR: return left | right;
    case LLCL_OP_XOR: return left ^ right;
    case LLCL_OP_MIN: return less ? left : right;
    case LLCL_OP_MAX: return less ? right : left;
    default: return coll_compose(left, right);
    }
}

UNCHECKED static inline void coll_combine(uint32_t type, uint32_t op, void *left, const void *right)
{
    if (type == LLCL_TYPE_BYTES) {
        size_t word;
        for (word = 0; word < COLL_BYTES; word += 8)
            coll_combine(LLCL_TYPE_U64, op, (char *)left + word, (const char *)right + word);
    } else if (!coll_is_plain(type)) {
        coll_number_combine(type, op, left, right);
    } else if (type == LLCL_TYPE_F32) {
        float a, b;
        memcpy(&a, left, sizeof a);
        memcpy(&b, right, sizeof b);
        a = (float)coll_combine_floats(op, a, b);
        memcpy(left, &a, sizeof a);
    } else if (type == LLCL_TYPE_F64) {
        double a, b;
        memcpy(&a, left, sizeof a);
        memcpy(&b, right, sizeof b);
        a = coll_combine_floats(op, a, b);
        memcpy(left, &a, sizeof a);
    } else {
        uint64_t a = coll_combine_integers(type, op, coll_load(type, left), coll_load(type, right));
        memcpy(left, &a, coll_width(type));
    }
}

/* LLCL_OP_USER of LLCL_TYPE_U64; `data` is a word that counts the elements, or NULL. */
static inline void coll_user(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    const unsigned char *a = left, *b = right;
    unsigned char *to = result;
    uint64_t i, x, y;
    for (i = 0; i < count; i++) {
        memcpy(&x, a + 8 * i, 8);
        memcpy(&y, b + 8 * i, 8);
        x = coll_compose(x, y);
        memcpy(to + 8 * i, &x, 8);
    }
    if (data)
        word_add(data, count);
}

/* coll_user() for LLCL_TYPE_BYTES: an element is COLL_BYTES bytes, the words of coll_user(). */
static inline void coll_user_bytes(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    coll_user(left, right, result, count * (COLL_BYTES / 8), NULL);
    if (data)
        word_add(data, count);
}

/* The number of elements that rank `from` has for rank `to`. */
static inline uint64_t coll_block(const struct coll_case *asked, uint32_t from, uint32_t to)
{
    uint64_t dice;
    if (!asked->varied)
        return asked->count;
    if (asked->operation == GATHER || asked->operation == ALLGATHER)
        to = 0;
    if (asked->operation == SCATTER || asked->operation == REDUCE_SCATTER)
        from = 0;
    /* In place, two ranks have blocks of equal length for each other. */
    if (asked->operation == ALLTOALL && asked->in_place && from > to) {
        uint32_t other = from;
        from = to;
        to = other;
    }
    dice = coll_mix(asked->seed * 31 + from * 101 + to);
    return dice % 4 == 0 ? 0 : dice / 4 % (asked->count + 1);
}

static inline llcl_coll_info_t coll_info(const llcl_coll_t *plan)
{
    llcl_coll_info_t info = LLCL_COLL_INFO_INIT;
    CHECK_OK(llcl_coll_query(plan, &info));
    return info;
}

#endif
