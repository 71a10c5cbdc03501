/* Broken if this fails: a user's function runs twice at the same time for one plan and rank,
 * although the plan does not allow it, or gets addresses that are not aligned; or
 * LLCL_COLL_CONCURRENT takes no effect, or is not compared among the ranks.
 * ranks: 1 2 3 5
 * engines: offload thread
 * modes: auto
 * threads: yes
 */
#include "coll.h"

#define N 32768u

struct calls {
    uint64_t inside, most, elements;
    int is_wide;
};

static void slowly(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    struct calls *calls = data;
    uint64_t inside = word_add(&calls->inside, 1) + 1, most = word_get(&calls->most);
    while (inside > most &&
           !__atomic_compare_exchange_n(&calls->most, &most, inside, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    CHECK(((uintptr_t)left | (uintptr_t)right | (uintptr_t)result) % 8 == 0);
    if (calls->is_wide)
        coll_user_bytes(left, right, result, count, &calls->elements);
    else
        coll_user(left, right, result, count, &calls->elements);
    usleep(50);
    word_add(&calls->inside, UINT64_MAX);
}

static void try_one(struct coll_case *asked, struct coll_memory *memory, uint32_t flags, uint32_t *most_queues)
{
    struct coll_run run;
    struct calls calls = {0, 0, 0, 0};
    llcl_status_t status;
    int round;
    memory->used = 0;
    coll_prepare(&run, asked, memory, memory);
    run.params.function = slowly;
    calls.is_wide = asked->type == LLCL_TYPE_BYTES;
    run.params.function_data = &calls;
    run.params.flags |= flags;
    status = coll_init(asked->operation, 0, &run.params, &run.plan);
    if (status == LLCL_ERR_UNSUPPORTED) { /* an algorithm in any order */
        coll_forget(&run);
        return;
    }
    CHECK_OK(status);
    if (coll_info(run.plan).queues > *most_queues)
        *most_queues = coll_info(run.plan).queues;
    for (round = 0; round < 3; round++) {
        coll_start(&run);
        if (round == (int)run.me % 3)
            sleep_ms(1);
        coll_finish(&run);
    }
    CHECK_EQUAL(word_get(&calls.inside), 0);
    if (!flags) {
        CHECK(word_get(&calls.most) <= 1);
        CHECK(coll_info(run.plan).queues <= 1 || llcl_team_size(asked->team) == 1);
    }
    coll_drop(&run);
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t flags, most_queues[2] = {0, 0};
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    int tried;
    coll_memory_make(context, ALLOCATED, (size_t)8 * N * (llcl_size(context) + 3), &memory);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_U64;
    asked.op = LLCL_OP_USER;
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        const struct coll_operation *operation = &coll_operations[asked.operation];
        if (!operation->combines)
            continue;
        for (tried = -1; tried < 0 || operation->algorithms[tried]; tried++) {
            asked.algorithm = tried < 0 ? NULL : operation->algorithms[tried];
            asked.type = tried % 2 ? LLCL_TYPE_BYTES : LLCL_TYPE_U64;
            asked.count = (asked.operation == REDUCE_SCATTER ? N / llcl_size(context) : N) / (tried % 2 ? 3 : 1);
            for (flags = 0; flags <= LLCL_COLL_CONCURRENT; flags += LLCL_COLL_CONCURRENT)
                try_one(&asked, &memory, flags, &most_queues[flags > 0]);
        }
    }
    if (llcl_size(context) > 1) {
        CHECK(most_queues[0] == 1);
        /* Over several nodes no algorithm that is put uses more. */
        CHECK(most_queues[1] > 1 || coll_is_posted(context));
        params.team = asked.team;
        params.type = LLCL_TYPE_U64;
        params.op = LLCL_OP_USER;
        params.function = slowly;
        params.flags = llcl_rank(context) == 1 ? LLCL_COLL_CONCURRENT : 0;
        CHECK_STATUS(llcl_allreduce_init(&params, &plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "flags") != NULL);
        params.op = LLCL_OP_ADD; /* of no account */
        CHECK_OK(llcl_allreduce(&params));
    }
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
