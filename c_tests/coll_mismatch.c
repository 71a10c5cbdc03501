/* Broken if this fails: ranks that do not agree about a collective, or one of which gives a
 * parameter that means nothing, get a plan, hang, or are not all told; or the message does not name
 * the field; or the team is unusable afterwards.
 * ranks: 1 2 3 5
 * modes: auto direct
 * threads: yes
 */
#include "coll.h"

#define SIZE 4096u

struct scene {
    llcl_context_t *context;
    llcl_team_t *team;
    struct coll_memory memory;
    uint64_t counts[COLL_MOST], offsets[COLL_MOST];
    uint32_t me, ranks, tries;
    int odd; /* this rank is the one that differs */
};

/* What all ranks give when nothing is wrong: in and out next to each other in one region. */
static llcl_coll_params_t agreed(struct scene *scene, int operation, int varied)
{
    llcl_coll_params_t params = {0};
    uint32_t r;
    for (r = 0; r < scene->ranks; r++) {
        scene->counts[r] = 5;
        scene->offsets[r] = 6 * r;
    }
    params.team = scene->team;
    params.send = llcl_region_local(scene->memory.shared.region, 0);
    params.receive = llcl_region_local(scene->memory.shared.region, SIZE / 2);
    params.count = 5;
    params.type = LLCL_TYPE_I32;
    params.op = LLCL_OP_ADD;
    if (varied) {
        params.send_counts = params.receive_counts = scene->counts;
        params.send_offsets = params.receive_offsets = scene->offsets;
    }
    scene->odd = scene->me == scene->tries++ % scene->ranks;
    (void)operation;
    return params;
}

/* The team is alive: a fresh plan of it gives the right sum. */
static void still_usable(struct scene *scene)
{
    struct coll_case asked = {0};
    scene->memory.used = 0;
    asked.team = scene->team;
    asked.operation = ALLREDUCE;
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    asked.count = 3;
    asked.seed = scene->tries;
    CHECK_OK(coll_whole(&asked, &scene->memory, 1));
}

/* Every rank is refused with the same status, and told the word; or that `one` rank was refused. */
static void refused(struct scene *scene, int operation, int varied, const llcl_coll_params_t *params,
                    llcl_status_t expected, const char *word, int one)
{
    llcl_coll_t *plan = NULL;
    llcl_status_t status = coll_init(operation, varied, params, &plan);
    char other[32];
    snprintf(other, sizeof other, "rank %u", (scene->tries - 1) % scene->ranks);
    if (one && !scene->odd)
        word = other;
    if (status != expected || !strstr(llcl_last_error(), word))
        fprintf(stderr, "%s%s, wrong %s, rank %u of %u, which is%s the odd one\n",
                coll_operations[operation].name, varied ? "v" : "", word, scene->me, scene->ranks,
                scene->odd ? "" : " not");
    CHECK_STATUS(status, expected);
    CHECK(strstr(llcl_last_error(), word) != NULL);
    CHECK(plan == NULL);
    still_usable(scene);
}

/* A field that is `value` at one rank and what all agreed upon at the others. */
#define DIFFERS(operation, varied, field, value, word)                                      \
    do {                                                                                    \
        llcl_coll_params_t params_ = agreed(scene, operation, varied);                      \
        if (scene->odd)                                                                     \
            params_.field = (value);                                                        \
        if (scene->ranks > 1)                                                               \
            refused(scene, operation, varied, &params_, LLCL_ERR_INVALID, word, 0);            \
    } while (0)

/* A field with a value that no rank may give, at one rank and then at all. */
#define NEVER(operation, varied, field, value, expected, word)                              \
    do {                                                                                    \
        llcl_coll_params_t params_ = agreed(scene, operation, varied);                      \
        if (scene->odd)                                                                     \
            params_.field = (value);                                                        \
        refused(scene, operation, varied, &params_, expected, word, 1);                     \
        params_ = agreed(scene, operation, varied);                                         \
        params_.field = (value);                                                            \
        refused(scene, operation, varied, &params_, expected, word, 0);                     \
    } while (0)

static void disagreement(struct scene *scene)
{
    llcl_coll_params_t wide;
    int operation;
    for (operation = BROADCAST; operation < OPERATIONS; operation++) {
        DIFFERS(operation, 0, count, 6, "count");
        DIFFERS(operation, 0, type, LLCL_TYPE_U32, "LLCL_TYPE_U32");
        DIFFERS(operation, 0, algorithm, coll_operations[operation].algorithms[0], "algorithm");
        if (coll_operations[operation].rooted)
            DIFFERS(operation, 0, root, 1, "root");
        if (coll_operations[operation].combines)
            DIFFERS(operation, 0, op, LLCL_OP_MAX, "LLCL_OP_MAX");
        if (operation != BROADCAST)
            DIFFERS(operation, 0, flags, LLCL_COLL_IN_PLACE, "flags");
    }
    DIFFERS(BARRIER, 0, algorithm, "tree", "algorithm");
    wide = agreed(scene, BROADCAST, 0);
    wide.type = LLCL_TYPE_BYTES;
    wide.element_size = scene->odd ? 40 : 24;
    if (scene->ranks > 1)
        refused(scene, BROADCAST, 0, &wide, LLCL_ERR_INVALID, "element_size", 0);
    DIFFERS(GATHER, 1, count, 6, "6 elements");
    DIFFERS(ALLGATHER, 1, count, 6, "6 elements");
    DIFFERS(SCATTER, 1, count, 6, "expected 6");
}

/* Different operations, and tables of lengths that do not fit together. */
static void other_disagreement(struct scene *scene)
{
    uint64_t others[COLL_MOST];
    llcl_coll_params_t params;
    uint32_t r;
    if (scene->ranks == 1)
        return;
    params = agreed(scene, ALLREDUCE, 0);
    refused(scene, scene->odd ? SCAN : ALLREDUCE, 0, &params, LLCL_ERR_INVALID, "operation", 0);
    params = agreed(scene, BARRIER, 0);
    refused(scene, scene->odd ? BROADCAST : BARRIER, 0, &params, LLCL_ERR_INVALID, "operation", 0);
    params = agreed(scene, ALLTOALL, 1);
    for (r = 0; r < scene->ranks; r++)
        others[r] = r == (scene->me + 1) % scene->ranks ? 4 : 5;
    if (scene->odd)
        params.send_counts = others;
    refused(scene, ALLTOALL, 1, &params, LLCL_ERR_INVALID, "elements", 0);
    params = agreed(scene, REDUCE_SCATTER, 1);
    if (scene->odd)
        params.receive_counts = others;
    refused(scene, REDUCE_SCATTER, 1, &params, LLCL_ERR_INVALID, "elements", 0);
}

static void nonsense(struct scene *scene)
{
    uint64_t word = 0;
    llcl_region_t *gone = NULL;
    llcl_local_t freed, none = {0, 0};
    llcl_completion_t odd_word = llcl_store_on(&word);
    llcl_completion_t bad_kind = llcl_no_completion();
    bad_kind.kind = 9;
    odd_word.target = (char *)&word + 1;
    CHECK_OK(llcl_region_allocate(scene->context, SIZE, 0, &gone));
    freed = llcl_region_local(gone, 0);
    CHECK_OK(llcl_region_free(gone));
    NEVER(BROADCAST, 0, root, scene->ranks, LLCL_ERR_INVALID, "root");
    NEVER(REDUCE, 0, root, UINT32_MAX, LLCL_ERR_INVALID, "root");
    NEVER(ALLREDUCE, 0, flags, 8, LLCL_ERR_INVALID, "flags");
    NEVER(ALLREDUCE, 0, element_size, 1, LLCL_ERR_INVALID, "element_size");
    NEVER(BARRIER, 0, engine, 3, LLCL_ERR_INVALID, "engine");
    NEVER(BARRIER, 0, on_complete, bad_kind, LLCL_ERR_INVALID, "on_complete");
    NEVER(ALLGATHER, 0, on_complete, llcl_callback(NULL, NULL), LLCL_ERR_INVALID, "on_complete");
    NEVER(ALLGATHER, 0, on_complete, llcl_store_on(NULL), LLCL_ERR_INVALID, "on_complete");
    NEVER(ALLGATHER, 0, on_complete, odd_word, LLCL_ERR_INVALID, "on_complete");
    NEVER(ALLGATHER, 0, send, none, LLCL_ERR_KEY, "send");
    NEVER(ALLGATHER, 0, receive, none, LLCL_ERR_KEY, "receive");
    NEVER(ALLGATHER, 0, receive, freed, LLCL_ERR_KEY, "receive");
    NEVER(BROADCAST, 0, receive, freed, LLCL_ERR_KEY, "receive");
    NEVER(ALLGATHER, 0, send.offset, SIZE - 19, LLCL_ERR_RANGE, "leave the region");
    NEVER(ALLGATHER, 0, send.offset, UINT64_MAX - 3, LLCL_ERR_RANGE, "region");
    NEVER(ALLGATHER, 0, receive.offset, SIZE - 20 * scene->ranks + 1, LLCL_ERR_RANGE, "leave the region");
    NEVER(BROADCAST, 0, receive.offset, SIZE + 1, LLCL_ERR_RANGE, "leave the region");
    NEVER(GATHER, 0, count, UINT64_MAX, LLCL_ERR_RANGE, "too much");
    NEVER(ALLTOALL, 0, count, UINT64_MAX / 4 + 2, LLCL_ERR_RANGE, "too much");
    NEVER(BROADCAST, 0, count, UINT64_MAX / 4 + 2, LLCL_ERR_RANGE, "too much");
    NEVER(BROADCAST, 0, count, SIZE, LLCL_ERR_RANGE, "leave the region");
    NEVER(ALLTOALL, 1, send_counts, NULL, LLCL_ERR_INVALID, "send_counts");
    NEVER(ALLTOALL, 1, send_offsets, NULL, LLCL_ERR_INVALID, "send_offsets");
    NEVER(ALLTOALL, 1, receive_counts, NULL, LLCL_ERR_INVALID, "receive_counts");
    NEVER(ALLTOALL, 1, receive_offsets, NULL, LLCL_ERR_INVALID, "receive_offsets");
    NEVER(ALLGATHER, 1, receive_counts, NULL, LLCL_ERR_INVALID, "receive_counts");
    NEVER(REDUCE_SCATTER, 1, receive_counts, NULL, LLCL_ERR_INVALID, "receive_counts");
}

/* Names that are none, or those of another operation: the answer lists what there is. */
static void wrong_names(struct scene *scene)
{
    int operation;
    for (operation = 0; operation < OPERATIONS; operation++) {
        const char *wrong = operation % 2 ? "no such algorithm" : "trinaryx3";
        llcl_coll_params_t params = agreed(scene, operation, 0);
        params.algorithm = wrong;
        refused(scene, operation, 0, &params, LLCL_ERR_INVALID, coll_operations[operation].algorithms[1], 0);
        DIFFERS(operation, 0, algorithm, wrong, "algorithm");
    }
}

/* Blocks of a v form that leave the region, at one rank only. */
static void blocks_out_of_range(struct scene *scene)
{
    llcl_coll_params_t params = agreed(scene, ALLTOALL, 1);
    uint64_t far[COLL_MOST];
    memcpy(far, scene->offsets, sizeof far);
    far[scene->ranks - 1] = SIZE / 8 - 4;
    if (scene->odd)
        params.receive_offsets = far;
    refused(scene, ALLTOALL, 1, &params, LLCL_ERR_RANGE, "leave the region", 1);
    params = agreed(scene, ALLTOALL, 1);
    far[scene->ranks - 1] = UINT64_MAX / 4 - 1;
    if (scene->odd)
        params.send_offsets = far;
    refused(scene, ALLTOALL, 1, &params, LLCL_ERR_RANGE, "send", 1);
}

/* Fields that an operation has no use for may be anything, at each rank something else. */
static void ignored(struct scene *scene)
{
    llcl_coll_t *plan = NULL;
    llcl_local_t nowhere;
    int operation;
    nowhere.offset = 1 + scene->me;
    nowhere.key = UINT64_MAX - scene->me;
    for (operation = 0; operation < OPERATIONS; operation++) {
        const struct coll_operation *about = &coll_operations[operation];
        llcl_coll_params_t params = agreed(scene, operation, 0);
        params.send_counts = params.receive_counts = (const uint64_t *)(uintptr_t)(8 + 8 * scene->me);
        params.send_offsets = params.receive_offsets = params.send_counts;
        params.function_data = &plan;
        if (!about->rooted)
            params.root = 1000 + scene->me;
        if (!about->combines)
            params.op = 1000 + scene->me;
        if (operation <= BROADCAST)
            params.send = nowhere;
        if (operation == BARRIER) {
            params.receive = nowhere;
            params.type = 1000 + scene->me;
            params.count = UINT64_MAX - scene->me;
        }
        if (operation == SCATTER && scene->me != 0)
            params.send = nowhere;
        if ((operation == GATHER || operation == REDUCE) && scene->me != 0)
            params.receive = nowhere;
        CHECK_OK(coll_init(operation, 0, &params, &plan));
        CHECK_OK(llcl_coll_start(plan));
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        CHECK_OK(llcl_coll_free(plan));
    }
    still_usable(scene);
}

/* Pointers without which there is no team to tell: refused where they are given. */
static void nulls(struct scene *scene)
{
    llcl_coll_params_t params = agreed(scene, BARRIER, 0);
    llcl_coll_t *plan = NULL;
    int operation, varied;
    for (operation = 0; operation < OPERATIONS; operation++)
        for (varied = 0; varied <= coll_operations[operation].has_varied; varied++) {
            llcl_coll_params_t orphan = agreed(scene, operation, varied);
            orphan.team = NULL;
            CHECK_STATUS(coll_init(operation, varied, NULL, &plan), LLCL_ERR_INVALID);
            CHECK_STATUS(coll_init(operation, varied, &orphan, &plan), LLCL_ERR_INVALID);
            CHECK(strstr(llcl_last_error(), "team") != NULL);
        }
    CHECK(plan == NULL);
    CHECK_STATUS(llcl_barrier_init(&params, NULL), LLCL_ERR_INVALID);
    still_usable(scene);
}

static void run(llcl_context_t *context)
{
    struct scene *scene = calloc(1, sizeof *scene);
    CHECK(scene != NULL);
    scene->context = context;
    scene->me = llcl_rank(context);
    scene->ranks = llcl_size(context);
    scene->team = coll_world(context);
    coll_memory_make(context, ALLOCATED, SIZE, &scene->memory);
    disagreement(scene);
    other_disagreement(scene);
    nonsense(scene);
    wrong_names(scene);
    blocks_out_of_range(scene);
    ignored(scene);
    nulls(scene);
    fence(context);
    region_drop(&scene->memory.shared);
    free(scene);
}

TEST_MAIN(run)
