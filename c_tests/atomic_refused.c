/* Broken if this fails: an atomic operation that makes no sense for its type, is unknown,
 * misaligned, or has nowhere to put its result, is accepted or gets the wrong reason; or
 * llcl_atomic_query says something else than what the operations do.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 * wire: no (expects the domain of mapped memory)
 */
#include "atomic_reference.h"

static void tiers(llcl_context_t *context, const llcl_atomic_params_t *atomic, llcl_status_t expected)
{
    CHECK_STATUS(llcl_try_atomic_async(context, atomic), expected);
    CHECK_STATUS(llcl_atomic_async(context, atomic), expected);
    CHECK_STATUS(llcl_atomic(context, atomic), expected);
}

/* The cost on memory that is mapped. */
static uint32_t by_instruction(uint32_t op, uint32_t type)
{
    int floating = type == LLCL_TYPE_F32 || type == LLCL_TYPE_F64;
    switch (op) {
    case LLCL_OP_LOAD: case LLCL_OP_STORE: case LLCL_OP_SWAP: case LLCL_OP_COMPARE_SWAP:
        return LLCL_COST_INSTRUCTION;
    case LLCL_OP_ADD: case LLCL_OP_SUB:
        return floating ? LLCL_COST_LOOP : LLCL_COST_INSTRUCTION;
#if !defined __x86_64__
    case LLCL_OP_AND: case LLCL_OP_OR: case LLCL_OP_XOR:
        return LLCL_COST_INSTRUCTION;
#endif
    default:
        return LLCL_COST_LOOP;
    }
}

static void query(llcl_context_t *context, const struct shared *target, uint32_t peer)
{
    int mine = peer == llcl_rank(context);
    llcl_atomic_info_t info = {0};
    size_t t, o;
    for (t = 0; t < TYPES; t++) {
        for (o = 0; o < OPS; o++) {
            memset(&info, 0xff, sizeof info);
            info.struct_size = sizeof info;
            CHECK_OK(llcl_atomic_query(context, peer, target->remote[peer], all_ops[o],
                                       all_types[t], &info));
            CHECK_EQUAL(info.supported, is_offered(all_ops[o], all_types[t]));
            if (!info.supported) {
                CHECK(info.cost == 0 && info.domain == 0);
                continue;
            }
            if (target->kind == ALLOCATED) {
                CHECK_EQUAL(info.domain, LLCL_DOMAIN_PROCESSOR);
                CHECK_EQUAL(info.cost, by_instruction(all_ops[o], all_types[t]));
            } else {
                CHECK_EQUAL(info.domain, LLCL_DOMAIN_OWNER);
                CHECK_EQUAL(info.cost, mine ? by_instruction(all_ops[o], all_types[t]) : LLCL_COST_MESSAGES);
            }
        }
    }
    CHECK_STATUS(llcl_atomic_query(context, peer, target->remote[peer], 13, LLCL_TYPE_U64, &info),
                 LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_atomic_query(context, peer, target->remote[peer], LLCL_OP_ADD, 11, &info),
                 LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_atomic_query(context, peer, target->remote[peer], LLCL_OP_ADD, LLCL_TYPE_U64,
                                   NULL),
                 LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_atomic_query(context, peer, llcl_at(target->remote[peer], 4), LLCL_OP_ADD,
                                   LLCL_TYPE_U64, &info),
                 LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "offset is 4, expected ") != NULL);
    CHECK_STATUS(llcl_atomic_query(context, llcl_size(context), target->remote[peer], LLCL_OP_ADD,
                                   LLCL_TYPE_U64, &info),
                 LLCL_ERR_INVALID);
}

static void refused(llcl_context_t *context, const struct shared *target, uint32_t peer, uint32_t flags)
{
    uint64_t result[2] = {7, 7};
    llcl_atomic_params_t atomic = {0};
    llcl_fetch_add_params_t add = {0};
    llcl_compare_swap_params_t swap = {0};
    size_t t, o, skew;
    atomic.peer = add.peer = swap.peer = peer;
    atomic.flags = add.flags = swap.flags = flags;
    atomic.target = remote_at(target, peer, 0);
    atomic.result = result;
    atomic.operand = 3;
    for (t = 0; t < TYPES; t++) {
        atomic.type = all_types[t];
        for (o = 0; o < OPS; o++) {
            atomic.op = all_ops[o];
            if (!is_offered(atomic.op, atomic.type)) {
                tiers(context, &atomic, LLCL_ERR_UNSUPPORTED);
                CHECK(strstr(llcl_last_error(), "is LLCL_OP_") && strstr(llcl_last_error(), "is LLCL_TYPE_F"));
            }
        }
        atomic.op = LLCL_OP_ADD;
        for (skew = 1; skew < type_size(atomic.type); skew++) {
            atomic.target = remote_at(target, peer, skew);
            tiers(context, &atomic, LLCL_ERR_INVALID);
            atomic.target = remote_at(target, peer, 0);
            atomic.result = (unsigned char *)result + skew;
            tiers(context, &atomic, LLCL_ERR_INVALID);
            atomic.result = result;
        }
        atomic.op = LLCL_OP_LOAD;
        atomic.result = NULL;
        tiers(context, &atomic, LLCL_ERR_INVALID);
        atomic.result = result;
        atomic.op = 0;
        tiers(context, &atomic, LLCL_ERR_INVALID);
        atomic.op = LLCL_OP_USER;
        tiers(context, &atomic, LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "op is LLCL_OP_USER, expected ") != NULL);
    }
    atomic.op = LLCL_OP_ADD;
    atomic.type = 0;
    tiers(context, &atomic, LLCL_ERR_INVALID);
    atomic.type = LLCL_TYPE_BYTES;
    tiers(context, &atomic, LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "type is LLCL_TYPE_BYTES, expected ") != NULL);
    add.target = swap.target = remote_at(target, peer, 4);
    CHECK_STATUS(llcl_fetch_add(context, &add), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_compare_swap(context, &swap), LLCL_ERR_INVALID);
    CHECK(result[0] == 7 && result[1] == 7);
}

static void run(llcl_context_t *context)
{
    uint32_t peer;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target;
        share(context, kind, 64, &target);
        for (peer = 0; peer < llcl_size(context); peer++) {
            query(context, &target, peer);
            refused(context, &target, peer, 0);
            refused(context, &target, peer, LLCL_FLAG_DEFER);
        }
        fence(context);
        CHECK(bytes_are(target.bytes, 64, 0));
        share_end(context, &target);
    }
}

TEST_MAIN(run)
