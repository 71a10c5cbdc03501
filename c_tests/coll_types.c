/* Broken if this fails: a reduction of some type by some operation is wrong, an
 * element of several bytes is cut apart, floating-point numbers lose
 * their NaN rule, a user's function is called in another order than that of the ranks or at another
 * rank, or a pair that makes no sense is not refused, by the names of the header.
 * ranks: 1 2 3 5
 * engines: offload thread
 * modes: auto
 * threads: yes
 */
#include "coll.h"

static const uint32_t types[] = {
    LLCL_TYPE_I8, LLCL_TYPE_U8, LLCL_TYPE_I16, LLCL_TYPE_U16, LLCL_TYPE_I32, LLCL_TYPE_U32, LLCL_TYPE_I64,
    LLCL_TYPE_U64, LLCL_TYPE_F32, LLCL_TYPE_F64, LLCL_TYPE_BYTES, LLCL_TYPE_BOOL, LLCL_TYPE_F16,
    LLCL_TYPE_BF16, LLCL_TYPE_LONG_DOUBLE, LLCL_TYPE_COMPLEX_F32, LLCL_TYPE_COMPLEX_F64, LLCL_TYPE_F32_I32,
    LLCL_TYPE_F64_I32, LLCL_TYPE_I32_I32, LLCL_TYPE_I64_I32, LLCL_TYPE_I64_I64, LLCL_TYPE_F64_I64,
    LLCL_TYPE_I16_I32, LLCL_TYPE_LONG_DOUBLE_I32};
static const uint32_t ops[] = {LLCL_OP_ADD, LLCL_OP_PROD, LLCL_OP_MIN,    LLCL_OP_MAX,   LLCL_OP_AND,
                               LLCL_OP_OR,  LLCL_OP_XOR,  LLCL_OP_MINLOC, LLCL_OP_MAXLOC};
#define TYPES (sizeof types / sizeof types[0])
#define OPS (sizeof ops / sizeof ops[0])

/* What a case is besides its type and operation, by turns. */
static void vary(struct coll_case *asked)
{
    asked->seed++;
    asked->in_place = asked->operation != BROADCAST && asked->seed % 2;
    asked->varied = coll_operations[asked->operation].has_varied && asked->seed / 2 % 2;
    asked->count = 1 + asked->seed % 60;
    if (asked->seed % 11 == 0)
        asked->count = 700; /* several segments */
}

/* Every pair, in both kinds of memory by turns. */
static void all_pairs(struct coll_case asked, struct coll_memory memories[MEMORY_KINDS])
{
    size_t type, op;
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        if (!coll_operations[asked.operation].combines)
            continue;
        for (type = 0; type < TYPES; type++)
            for (op = 0; op < OPS; op++) {
                asked.type = types[type];
                asked.op = ops[op];
                vary(&asked);
                if (coll_has(asked.type, asked.op)) {
                    CHECK_OK(coll_whole(&asked, &memories[asked.seed / 4 % 2], 1));
                } else if ((asked.seed + type) % 5 == 0) {
                    CHECK_STATUS(coll_whole(&asked, &memories[0], 1), LLCL_ERR_UNSUPPORTED);
                    CHECK(strstr(llcl_last_error(), "op is LLCL_OP_") || strstr(llcl_last_error(), "refused by rank"));
                }
            }
    }
}

/* What only moves takes elements of every type. */
static void moved(struct coll_case asked, struct coll_memory memories[MEMORY_KINDS])
{
    size_t type;
    for (asked.operation = BROADCAST; asked.operation < OPERATIONS; asked.operation++) {
        if (coll_operations[asked.operation].combines)
            continue;
        for (type = 0; type < TYPES; type++) {
            asked.type = types[type];
            vary(&asked);
            CHECK_OK(coll_whole(&asked, &memories[asked.seed / 4 % 2], 1));
        }
    }
}

/* The function's data at one rank. */
struct owner {
    uint64_t elements;
    uint64_t strangers; /* calls on a thread of another rank's process */
    pid_t process;
};

static void compose_here(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    struct owner *owner = data;
    if (owner->process != getpid())
        word_add(&owner->strangers, 1);
    coll_user(left, right, result, count, &owner->elements);
}

static void compose_bytes_here(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    struct owner *owner = data;
    if (owner->process != getpid())
        word_add(&owner->strangers, 1);
    coll_user_bytes(left, right, result, count, &owner->elements);
}

/* Every algorithm that keeps the order of ranks; the others refuse. */
static void users_functions(struct coll_case asked, struct coll_memory *memory, uint32_t ranks, uint32_t type)
{
    struct owner owner = {0, 0, 0};
    int tried;
    owner.process = getpid();
    asked.type = type;
    asked.op = LLCL_OP_USER;
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        const struct coll_operation *operation = &coll_operations[asked.operation];
        if (!operation->combines)
            continue;
        for (tried = -1; tried < 0 || operation->algorithms[tried]; tried++)
            for (asked.in_place = 0; asked.in_place < 2; asked.in_place++) {
                struct coll_run run;
                size_t used = memory->used;
                llcl_status_t status;
                asked.algorithm = tried < 0 ? NULL : operation->algorithms[tried];
                asked.seed++;
                asked.root = operation->rooted ? (uint32_t)asked.seed % ranks : 0;
                asked.count = asked.seed % 3 ? asked.seed % 50 : 300;
                coll_prepare(&run, &asked, memory, memory);
                run.params.function = type == LLCL_TYPE_BYTES ? compose_bytes_here : compose_here;
                run.params.function_data = &owner;
                status = coll_init(asked.operation, 0, &run.params, &run.plan);
                if (status == LLCL_ERR_UNSUPPORTED && asked.algorithm) {
                    coll_forget(&run);
                } else {
                    CHECK_OK(status);
                    coll_rounds(&run, 2);
                    coll_drop(&run);
                }
                memory->used = used;
            }
    }
    CHECK_EQUAL(word_get(&owner.strangers), 0);
}

/* MIN and MAX of a number and a NaN give the number; infinities are numbers. */
static void not_numbers(llcl_team_t *team, struct coll_memory *memory)
{
    llcl_coll_params_t params = {0};
    uint32_t me = llcl_team_rank(team), ranks = llcl_team_size(team);
    double *in = (double *)(void *)memory->shared.bytes, *out = in + 8;
    float *small = (float *)(void *)(out + 8);
    params.team = team;
    params.type = LLCL_TYPE_F64;
    params.op = LLCL_OP_MIN;
    params.count = 3;
    params.send = llcl_region_local(memory->shared.region, 0);
    params.receive = llcl_region_local(memory->shared.region, 64);
    in[0] = me == ranks - 1 ? 5.0 : NAN;
    in[1] = me == 0 ? -INFINITY : (double)me;
    in[2] = NAN;
    CHECK_OK(llcl_allreduce(&params));
    CHECK(out[0] == 5.0 && out[1] == -INFINITY && isnan(out[2]));
    params.op = LLCL_OP_MAX;
    CHECK_OK(llcl_allreduce(&params));
    CHECK(out[0] == 5.0 && isnan(out[2]));
    CHECK(out[1] == (ranks == 1 ? -INFINITY : (double)(ranks - 1)));
    params.type = LLCL_TYPE_F32;
    params.count = 1;
    params.send = llcl_region_local(memory->shared.region, 128);
    small[0] = me == 0 ? -2.5f : NAN;
    CHECK_OK(llcl_allreduce(&params));
    CHECK(*(float *)(void *)out == -2.5f);
}

/* Numbers that are no type or no operation of collectives. */
static void nonsense(struct coll_case asked, struct coll_memory *memory)
{
    static const uint32_t no_types[] = {0, 26, 99, UINT32_MAX};
    static const uint32_t no_ops[] = {0, LLCL_OP_LOAD, LLCL_OP_STORE, LLCL_OP_SWAP, LLCL_OP_COMPARE_SWAP,
                                      LLCL_OP_SUB, 16, UINT32_MAX};
    struct coll_run run;
    size_t i;
    llcl_status_t status;
    asked.count = 4;
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        if (!coll_operations[asked.operation].combines)
            continue;
        asked.type = LLCL_TYPE_I32;
        for (i = 0; i < sizeof no_ops / sizeof no_ops[0]; i++) {
            asked.op = no_ops[i];
            status = coll_whole(&asked, memory, 1);
            CHECK(status == LLCL_ERR_INVALID || status == LLCL_ERR_UNSUPPORTED);
            CHECK(strstr(llcl_last_error(), "op") != NULL);
        }
        asked.op = LLCL_OP_ADD;
        for (i = 0; i < sizeof no_types / sizeof no_types[0]; i++) {
            asked.type = no_types[i];
            CHECK_STATUS(coll_whole(&asked, memory, 1), LLCL_ERR_INVALID);
            CHECK(strstr(llcl_last_error(), "type") != NULL);
        }
        /* Bytes without their number, and a number without bytes. */
        asked.type = LLCL_TYPE_BYTES;
        asked.op = LLCL_OP_USER;
        coll_prepare(&run, &asked, memory, memory);
        run.params.element_size = 0;
        CHECK_STATUS(coll_init(asked.operation, 0, &run.params, &run.plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "element_size is 0") != NULL);
        run.params.type = LLCL_TYPE_U64;
        run.params.element_size = 8;
        CHECK_STATUS(coll_init(asked.operation, 0, &run.params, &run.plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "element_size is 8") != NULL);
        coll_forget(&run);
        memory->used = 0;
        /* A user's operation without a function. */
        asked.type = LLCL_TYPE_U64;
        asked.op = LLCL_OP_USER;
        coll_prepare(&run, &asked, memory, memory);
        run.params.function = NULL;
        CHECK_STATUS(coll_init(asked.operation, 0, &run.params, &run.plan), LLCL_ERR_INVALID);
        CHECK(run.plan == NULL);
        coll_forget(&run);
        memory->used = 0;
    }
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memories[MEMORY_KINDS];
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        coll_memory_make(context, kind, (size_t)1 << 18, &memories[kind]);
    asked.team = coll_world(context);
    all_pairs(asked, memories);
    moved(asked, memories);
    users_functions(asked, &memories[0], llcl_size(context), LLCL_TYPE_U64);
    users_functions(asked, &memories[0], llcl_size(context), LLCL_TYPE_BYTES);
    fence(context);
    not_numbers(asked.team, &memories[0]);
    nonsense(asked, &memories[0]);
    fence(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        region_drop(&memories[kind].shared);
}

int main(void)
{
    coll_default("LLCL_COLL_SEGMENT", "1024");
    return test_main(run, NULL);
}
