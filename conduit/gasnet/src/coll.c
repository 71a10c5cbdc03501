/* gex_Coll_*: broadcast and reductions; gex_Coll_BarrierNB is in barrier.c. */
#include "rounds.h"

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t size,
                                 gex_Flags_t flags) {
    bool is_root = tm->rank == root;
    (void)flags;
    must_be_up("gex_Coll_BroadcastNB");
    must_be_a_team(tm, "gex_Coll_BroadcastNB");
    if (root >= tm->size) {
        fatal("gex_Coll_BroadcastNB: root %u of a team of %u", root, tm->size);
    }
    if (!size) {
        return GEX_EVENT_INVALID;
    }
    struct operation wanted = {.wish = {BROADCAST, root, LLCL_TYPE_U8, 0, 1, size}};
    wanted.src = is_root ? src : NULL;
    wanted.dst = is_root && src == dst ? NULL : dst;
    return operation_begin(tm, &wanted);
}

static uint32_t type_of(gex_DT_t type) {
    switch (type) {
    case GEX_DT_I32: return LLCL_TYPE_I32;
    case GEX_DT_U32: return LLCL_TYPE_U32;
    case GEX_DT_I64: return LLCL_TYPE_I64;
    case GEX_DT_U64: return LLCL_TYPE_U64;
    case GEX_DT_FLT: return LLCL_TYPE_F32;
    case GEX_DT_DBL: return LLCL_TYPE_F64;
    case GEX_DT_USER: return LLCL_TYPE_BYTES;
    }
    fatal("a reduction of type %#x, which is none of GEX_DT_*", type);
}

static uint32_t op_of(gex_OP_t op) {
    switch (op) {
    case GEX_OP_ADD: return LLCL_OP_ADD;
    case GEX_OP_MULT: return LLCL_OP_PROD;
    case GEX_OP_MIN: return LLCL_OP_MIN;
    case GEX_OP_MAX: return LLCL_OP_MAX;
    case GEX_OP_AND: return LLCL_OP_AND;
    case GEX_OP_OR: return LLCL_OP_OR;
    case GEX_OP_XOR: return LLCL_OP_XOR;
    case GEX_OP_USER:
    case GEX_OP_USER_NC: return LLCL_OP_USER;
    }
    fatal("a reduction by operation %#x, which is none for reductions", op);
}

static gex_Event_t reduce(gex_TM_t tm, struct operation *wanted, size_t element) {
    const struct wish *wish = &wanted->wish;
    must_be_up("a reduction");
    must_be_a_team(tm, "a reduction");
    if (!wish->count || !element || element > UINT32_MAX || wish->root >= tm->size) {
        fatal("a reduction of %zu elements of %zu bytes with root %u in a team of %u", (size_t)wish->count, element,
              wish->root, tm->size);
    }
    if (wish->op == LLCL_OP_USER && !wanted->function) {
        fatal("a reduction by GEX_OP_USER without a function");
    }
    if (wish->type == LLCL_TYPE_BYTES && wish->op != LLCL_OP_USER) {
        fatal("a reduction of GEX_DT_USER by an operation that is not GEX_OP_USER");
    }
    return operation_begin(tm, wanted);
}

gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t type,
                                   size_t type_size, size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function,
                                   void *data, gex_Flags_t flags) {
    struct operation wanted = {.wish = {REDUCE, root, type_of(type), op_of(op), (uint32_t)type_size, count},
                               .src = src, .function = function, .data = data};
    (void)flags;
    wanted.dst = tm->rank == root ? dst : NULL;
    return reduce(tm, &wanted, type_size);
}

gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t type, size_t type_size,
                                   size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function, void *data,
                                   gex_Flags_t flags) {
    struct operation wanted = {.wish = {ALLREDUCE, 0, type_of(type), op_of(op), (uint32_t)type_size, count},
                               .src = src, .dst = dst, .function = function, .data = data};
    (void)flags;
    return reduce(tm, &wanted, type_size);
}
