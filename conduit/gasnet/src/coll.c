/* Broadcast and reductions, over plans of libllcl.
 *
 * The specification lets such a call wait for the other ranks, so each is done when it returns. Buffers may be any
 * memory; plans want theirs once, so a plan has memory of its own, and data is copied in and out. A team keeps its
 * last plans: all ranks make the same calls in the same order and so keep the same ones. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define PLANS_KEPT 16
#define PIECE ((size_t)4 << 20) /* bytes that one round of a plan moves */

enum kind { BROADCAST, REDUCE, ALLREDUCE };
struct wish {
    enum kind kind;
    gex_Rank_t root;
    uint32_t type;
    uint32_t op;
    uint32_t element;
    uint64_t count;
};

struct plan {
    struct wish wish;
    llcl_coll_t *coll;
    llcl_region_t *region;
    char *send, *receive;
    gex_Coll_ReduceFn_t function; /* of the present round */
    const void *data;
    struct plan *next;
};

static void combine(const void *left, const void *right, void *result, uint64_t count, void *data) {
    const struct plan *plan = data;
    size_t element = plan->wish.element;
    if (result == right) {
        plan->function(left, result, count, plan->data);
        return;
    }
    /* The result goes over the right operand there, so that needs a copy where `result` is another place. */
    char room[4096];
    for (uint64_t done = 0, part; done < count; done += part) {
        part = sizeof room / element ? sizeof room / element : 1;
        part = part < count - done ? part : count - done;
        void *copy = part * element <= sizeof room ? room : malloc(part * element);
        if (!copy) {
            fatal("no memory for an element of %zu bytes", element);
        }
        memcpy(copy, (const char *)right + done * element, part * element);
        plan->function((const char *)left + done * element, copy, part, plan->data);
        memcpy((char *)result + done * element, copy, part * element);
        if (copy != room) {
            free(copy);
        }
    }
}

static struct plan *plan_make(struct team *team, const struct wish *wish) {
    struct plan *plan = calloc(1, sizeof *plan);
    size_t size = wish->count * wish->element;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    if (!plan) {
        fatal("no memory for a plan");
    }
    plan->wish = *wish;
    size = (size + LINE - 1) / LINE * LINE;
    must(llcl_region_allocate(job.context, 2 * size, 0, &plan->region), "memory for a collective");
    plan->send = llcl_region_address(plan->region);
    plan->receive = plan->send + size;
    params.team = team->llcl;
    params.send = llcl_region_local(plan->region, 0);
    params.receive = llcl_region_local(plan->region, size);
    params.count = wish->count;
    params.type = wish->type;
    params.element_size = wish->type == LLCL_TYPE_BYTES ? wish->element : 0;
    params.op = wish->op;
    params.root = wish->root;
    params.function = wish->op == LLCL_OP_USER ? combine : NULL;
    params.function_data = plan;
    must(wish->kind == BROADCAST ? llcl_broadcast_init(&params, &plan->coll)
         : wish->kind == REDUCE  ? llcl_reduce_init(&params, &plan->coll)
                                 : llcl_allreduce_init(&params, &plan->coll),
         "a collective");
    return plan;
}

static void plan_free(struct plan *plan) {
    must(llcl_coll_free(plan->coll), "the end of a plan");
    must(llcl_region_free(plan->region), "the end of a plan");
    free(plan);
}

void plans_free(struct team *team) {
    while (team->plans) {
        struct plan *plan = team->plans;
        team->plans = plan->next;
        plan_free(plan);
    }
}

static bool same(const struct wish *a, const struct wish *b) {
    return a->kind == b->kind && a->root == b->root && a->type == b->type && a->op == b->op &&
           a->element == b->element && a->count == b->count;
}

/* The team's plan for the wish, moved to the front; the last one goes when there are too many. */
static struct plan *plan_find(struct team *team, const struct wish *wish) {
    struct plan **at = &team->plans, *plan;
    int kept = 0;
    while (*at && !same(&(*at)->wish, wish) && ++kept < PLANS_KEPT) {
        at = &(*at)->next;
    }
    plan = *at;
    if (plan) {
        *at = plan->next;
    }
    if (plan && !same(&plan->wish, wish)) {
        plan_free(plan);
        plan = NULL;
    }
    if (!plan) {
        plan = plan_make(team, wish);
    }
    plan->next = team->plans;
    team->plans = plan;
    return plan;
}

static void round_of(struct plan *plan, const void *src, void *dst) {
    size_t size = plan->wish.count * plan->wish.element;
    char *in = plan->wish.kind == BROADCAST ? plan->receive : plan->send;
    if (src) {
        memcpy(in, src, size);
    }
    must(llcl_coll_start(plan->coll), "a collective");
    must(llcl_coll_wait(plan->coll, -1), "a collective");
    if (dst) {
        memcpy(dst, plan->receive, size);
    }
}

/* In pieces of at most PIECE bytes, one at least of the rest. */
static void run_pieces(struct team *team, struct wish wish, const char *src, char *dst, gex_Coll_ReduceFn_t function,
                       const void *data) {
    uint64_t left = wish.count, most = PIECE / wish.element ? PIECE / wish.element : 1;
    while (left) {
        wish.count = left < most ? left : most;
        struct plan *plan = plan_find(team, &wish);
        plan->function = function;
        plan->data = data;
        round_of(plan, src, dst);
        src = src ? src + wish.count * wish.element : NULL;
        dst = dst ? dst + wish.count * wish.element : NULL;
        left -= wish.count;
    }
}

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t size,
                                 gex_Flags_t flags) {
    struct wish wish = {BROADCAST, root, LLCL_TYPE_U8, 0, 1, size};
    bool is_root = tm->rank == root;
    (void)flags;
    must_be_up("gex_Coll_BroadcastNB");
    if (root >= tm->size) {
        fatal("gex_Coll_BroadcastNB: root %u of a team of %u", root, tm->size);
    }
    run_pieces((struct team *)tm, wish, is_root ? src : NULL, is_root && src == dst ? NULL : dst, NULL, NULL);
    return GEX_EVENT_INVALID;
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

static struct wish reduction(gex_TM_t tm, enum kind kind, gex_Rank_t root, gex_DT_t type, size_t type_size,
                             size_t count, gex_OP_t op) {
    struct wish wish = {kind, root, type_of(type), op_of(op), (uint32_t)type_size, count};
    must_be_up("a reduction");
    if (!count || !type_size || type_size > UINT32_MAX || root >= tm->size) {
        fatal("a reduction of %zu elements of %zu bytes with root %u in a team of %u", count, type_size, root,
              tm->size);
    }
    return wish;
}

gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t type,
                                   size_t type_size, size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function,
                                   void *data, gex_Flags_t flags) {
    (void)flags;
    run_pieces((struct team *)tm, reduction(tm, REDUCE, root, type, type_size, count, op), src,
               tm->rank == root ? dst : NULL, function, data);
    return GEX_EVENT_INVALID;
}

gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t type, size_t type_size,
                                   size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function, void *data,
                                   gex_Flags_t flags) {
    (void)flags;
    run_pieces((struct team *)tm, reduction(tm, ALLREDUCE, 0, type, type_size, count, op), src, dst, function, data);
    return GEX_EVENT_INVALID;
}
