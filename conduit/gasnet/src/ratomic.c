/* Remote atomics. The calling thread executes those on mapped memory; libllcl executes all
 * others. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct gexl_ad {
    gex_TM_t tm;
    gex_DT_t type;
    gex_OP_t ops;
    gex_Flags_t flags;
    const void *data;
};

void gex_AD_Create(gex_AD_t *ad, gex_TM_t tm, gex_DT_t type, gex_OP_t ops, gex_Flags_t flags) {
    must_be_up("gex_AD_Create");
    *ad = calloc(1, sizeof **ad);
    if (!*ad) {
        fatal("gex_AD_Create: no memory");
    }
    **ad = (struct gexl_ad){tm, type, ops, flags, NULL};
}
void gex_AD_Destroy(gex_AD_t ad) { free(ad); }
gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad) { return ad->flags; }
gex_TM_t gex_AD_QueryTM(gex_AD_t ad) { return ad->tm; }
gex_DT_t gex_AD_QueryDT(gex_AD_t ad) { return ad->type; }
gex_OP_t gex_AD_QueryOps(gex_AD_t ad) { return ad->ops; }
void gex_AD_SetCData(gex_AD_t ad, const void *value) { ad->data = value; }
void *gex_AD_QueryCData(gex_AD_t ad) { return (void *)ad->data; }

static struct far_place target_of(gex_AD_t ad, gex_Rank_t rank, void *target, gex_OP_t op, gex_DT_t type,
                                  size_t size, gex_Flags_t flags) {
    if (ad->type != type || !(ad->ops & op)) {
        fatal("operation %#x of type %#x on an atomic domain for operations %#x of type %#x", op, type, ad->ops,
              ad->type);
    }
    if ((uintptr_t)target % size) {
        fatal("an atomic of %zu bytes on %p, which is not aligned", size, target);
    }
    return find(flags & GEX_FLAG_RANK_IS_JOBRANK ? gexl_world : ad->tm, rank, target, size);
}

#define BAD_OP(op) fatal("atomic operation %#x is none for this type", op)
/* next_*: the new value of a word. The caller passes the non-fetching form of an operation. */
#define BITS(type)                                                                                  \
    case GEX_OP_AND: return old & a;                                                                \
    case GEX_OP_OR: return old | a;                                                                 \
    case GEX_OP_XOR: return old ^ a;
#define NO_BITS(type)
/* Signed integers are computed as unsigned ones, so that they wrap around. */
#define NEXT(NAME, type, wide, MORE)                                                                \
    static type next_##NAME(gex_OP_t op, type old, type a) {                                        \
        switch (op) {                                                                               \
        case GEX_OP_ADD: return (type)((wide)old + (wide)a);                                        \
        case GEX_OP_SUB: return (type)((wide)old - (wide)a);                                        \
        case GEX_OP_INC: return (type)((wide)old + (wide)1);                                        \
        case GEX_OP_DEC: return (type)((wide)old - (wide)1);                                        \
        case GEX_OP_MULT: return (type)((wide)old * (wide)a);                                       \
        case GEX_OP_MIN: return old < a ? old : a;                                                  \
        case GEX_OP_MAX: return old > a ? old : a;                                                  \
        case GEX_OP_SET: return a;                                                                  \
        case GEX_OP_GET: return old;                                                                \
        MORE(type)                                                                                  \
        }                                                                                           \
        BAD_OP(op);                                                                                 \
    }
/* An atomic on memory that this process does not map, also behind a wire. Operands are bit
 * patterns. `result`: NULL, or where the word's old value goes. */
static llcl_atomic_params_t far_atomic(const struct far_place *word, uint32_t type, gex_OP_t op, uint64_t operand,
                                       uint64_t operand2, void *result) {
    static const struct {
        gex_OP_t op;
        uint32_t llcl;
    } ops[] = {{GEX_OP_ADD, LLCL_OP_ADD}, {GEX_OP_INC, LLCL_OP_ADD}, {GEX_OP_SUB, LLCL_OP_SUB},
               {GEX_OP_DEC, LLCL_OP_SUB}, {GEX_OP_MULT, LLCL_OP_PROD}, {GEX_OP_MIN, LLCL_OP_MIN},
               {GEX_OP_MAX, LLCL_OP_MAX}, {GEX_OP_AND, LLCL_OP_AND}, {GEX_OP_OR, LLCL_OP_OR},
               {GEX_OP_XOR, LLCL_OP_XOR}, {GEX_OP_SET, LLCL_OP_SWAP}, {GEX_OP_GET, LLCL_OP_LOAD},
               {GEX_OP_CAS, LLCL_OP_COMPARE_SWAP}};
    llcl_atomic_params_t params = LLCL_ATOMIC_PARAMS_INIT;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        params.op = ops[i].op == op ? ops[i].llcl : params.op;
    }
    if (!params.op) {
        BAD_OP(op);
    }
    params.peer = word->jobrank;
    params.target = word->remote;
    params.type = type;
    params.operand = op == GEX_OP_CAS ? operand2 : operand;
    params.compare = operand;
    params.result = result;
    return params;
}

static unsigned category_of(gex_OP_t op) { return op == GEX_OP_SET ? PUTS : op == GEX_OP_GET ? GETS : RMWS; }

/* operate_*: executes an atomic on mapped memory. Fills `far` in and returns false if the memory is
 * not mapped. Compare-and-swap exchanges the word as a bit pattern, so one loop serves integers and
 * floating-point numbers. Integer additions, the most frequent ones, use the processor's
 * fetch-add. */
#define OPERATE(NAME, type, llcl, bits, is_integer)                                                 \
    static bool operate_##NAME(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op, \
                               type operand1, type operand2, gex_Flags_t flags,                     \
                               llcl_atomic_params_t *far) {                                         \
        struct far_place at = target_of(ad, rank, target, op, GEX_DT_##NAME, sizeof(type), flags);  \
        bits *word = at.here;                                                                       \
        bits old, to, given;                                                                        \
        type value, next;                                                                           \
        bool fetches = op >= GEX_OP_FAND;                                                           \
        gex_OP_t plain = op >= GEX_OP_FAND && op != GEX_OP_GET ? GEX_OP_TO_NONFETCHING(op) : op;    \
        value = plain == GEX_OP_INC || plain == GEX_OP_DEC ? (type)1 : operand1;                    \
        memcpy(&given, &value, sizeof given);                                                       \
        memcpy(&to, &operand2, sizeof to);                                                          \
        if (!word) {                                                                                \
            *far = far_atomic(&at, llcl, plain, given, to, fetches ? result : NULL);                \
            return false;                                                                           \
        }                                                                                           \
        if (plain == GEX_OP_CAS) {                                                                  \
            old = given;                                                                            \
            __atomic_compare_exchange_n(word, &old, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
        } else if (is_integer && plain == GEX_OP_ADD) {                                             \
            old = __atomic_fetch_add(word, given, __ATOMIC_SEQ_CST);                                \
        } else if (plain == GEX_OP_GET) {                                                           \
            old = __atomic_load_n(word, __ATOMIC_SEQ_CST);                                          \
        } else {                                                                                    \
            old = __atomic_load_n(word, __ATOMIC_RELAXED);                                          \
            do {                                                                                    \
                memcpy(&value, &old, sizeof value);                                                 \
                next = next_##NAME(plain, value, operand1);                                         \
                memcpy(&to, &next, sizeof to);                                                      \
            } while (!__atomic_compare_exchange_n(word, &old, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
        }                                                                                           \
        if (fetches) {                                                                              \
            memcpy(result, &old, sizeof old);                                                       \
        }                                                                                           \
        return true;                                                                                \
    }                                                                                               \
    int gex_AD_OpNBI_##NAME(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,  \
                            type operand1, type operand2, gex_Flags_t flags) {                      \
        llcl_atomic_params_t far;                                                                   \
        return !operate_##NAME(ad, result, rank, target, op, operand1, operand2, flags, &far) &&    \
               !group_atomic(nbi_group(), &far, category_of(op), flags);                        \
    }                                                                                               \
    gex_Event_t gex_AD_OpNB_##NAME(gex_AD_t ad, type *result, gex_Rank_t rank, void *target,        \
                                   gex_OP_t op, type operand1, type operand2, gex_Flags_t flags) {  \
        llcl_atomic_params_t far;                                                                   \
        if (operate_##NAME(ad, result, rank, target, op, operand1, operand2, flags, &far)) {        \
            return GEX_EVENT_INVALID;                                                               \
        }                                                                                           \
        struct group *group = group_new(true);                                                      \
        return group_event_if(group_atomic(group, &far, RMWS, flags), group);                       \
    }
NEXT(I32, int32_t, uint32_t, BITS)
NEXT(U32, uint32_t, uint32_t, BITS)
NEXT(I64, int64_t, uint64_t, BITS)
NEXT(U64, uint64_t, uint64_t, BITS)
NEXT(FLT, float, float, NO_BITS)
NEXT(DBL, double, double, NO_BITS)
OPERATE(I32, int32_t, LLCL_TYPE_I32, uint32_t, true)
OPERATE(U32, uint32_t, LLCL_TYPE_U32, uint32_t, true)
OPERATE(I64, int64_t, LLCL_TYPE_I64, uint64_t, true)
OPERATE(U64, uint64_t, LLCL_TYPE_U64, uint64_t, true)
OPERATE(FLT, float, LLCL_TYPE_F32, uint32_t, false)
OPERATE(DBL, double, LLCL_TYPE_F64, uint64_t, false)
