/* Broken if this fails: a collective writes bytes of a buffer that it is not asked to write: a gap
 * between the blocks of a v form, which is the user's or another plan's meanwhile, or data that a
 * rank only sends, which may be read-only: that of a broadcast's root, and a rank's own block where
 * it runs in place.
 * ranks: 1 2 3 5
 * engines: offload thread
 * modes: auto
 * threads: yes
 */
#include "coll.h"
#include <sys/mman.h>

#define K 40u /* elements of a block */
#define ROUNDS 6

struct scene {
    llcl_context_t *context;
    llcl_team_t *team;
    uint32_t me, ranks;
    int kind;
    struct shared memory;
};

static llcl_coll_params_t params_of(struct scene *scene, uint64_t send, uint64_t receive)
{
    llcl_coll_params_t params = {0};
    params.team = scene->team;
    params.type = LLCL_TYPE_U64;
    params.count = K;
    params.send = llcl_region_local(scene->memory.region, 8 * send);
    params.receive = llcl_region_local(scene->memory.region, 8 * receive);
    return params;
}

/* What the plan `which` brings in round `round` as element i of rank `from`'s block. */
static uint64_t element(uint32_t which, uint64_t round, uint32_t from, uint32_t i)
{
    return 1 + i + 1000 * (which + 2 * (from + 100 * round));
}

/* Two plans whose blocks interleave in one output, both under way; then a word that the user writes
 * into a gap while the round is under way. */
static void interleaved(struct scene *scene, int operation)
{
    uint64_t counts[COLL_MOST], offsets[2][COLL_MOST], *send = scene->memory.words, *receive = send + 2 * K;
    int receives = operation == ALLGATHER || scene->me == 0;
    llcl_coll_t *plans[2];
    uint32_t which, from, i, round;
    for (from = 0; from < scene->ranks; from++) {
        counts[from] = K;
        offsets[0][from] = 2 * K * from;
        offsets[1][from] = 2 * K * from + K;
    }
    for (which = 0; which < 2; which++) {
        llcl_coll_params_t params = params_of(scene, which * K, 2 * K);
        params.receive_counts = counts;
        params.receive_offsets = offsets[which];
        CHECK_OK(coll_init(operation, 1, &params, &plans[which]));
    }
    for (round = 0; round < ROUNDS; round++) {
        for (which = 0; which < 2; which++)
            for (i = 0; i < K; i++)
                send[which * K + i] = element(which, round, scene->me, i);
        fence(scene->context);
        if (scene->me % 2)
            sleep_ms(1);
        CHECK_OK(llcl_coll_start(plans[0]));
        CHECK_OK(llcl_coll_start(plans[1]));
        CHECK_OK(llcl_coll_wait(plans[round % 2], TEST_PATIENCE_NS));
        CHECK_OK(llcl_coll_wait(plans[1 - round % 2], TEST_PATIENCE_NS));
        for (from = 0; receives && from < scene->ranks; from++)
            for (i = 0; i < 2 * K; i++)
                CHECK_EQUAL(receive[2 * K * from + i], element(i / K, round, from, i % K));
    }
    fence(scene->context);
    if (scene->me == scene->ranks - 1 && scene->ranks > 1)
        sleep_ms(30);
    CHECK_OK(llcl_coll_start(plans[0]));
    sleep_ms(5);
    for (i = 0; receives && i < K; i++)
        receive[K + i] = 42 + i;
    CHECK_OK(llcl_coll_wait(plans[0], TEST_PATIENCE_NS));
    for (i = 0; receives && i < K; i++)
        CHECK_EQUAL(receive[K + i], 42 + i);
    for (which = 0; which < 2; which++)
        CHECK_OK(llcl_coll_free(plans[which]));
}

/* A plan runs while the pages of what this rank only sends are read-only. Its data: the page's
 * rank. */
static void protected_round(int operation, const llcl_coll_params_t *params, int varied,
                            unsigned char *pages, int is_protected)
{
    llcl_coll_t *plan;
    int round;
    CHECK_OK(coll_init(operation, varied, params, &plan));
    if (is_protected)
        CHECK(mprotect(pages, 4096, PROT_READ) == 0);
    for (round = 0; round < 3; round++) {
        CHECK_OK(llcl_coll_start(plan));
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    }
    if (is_protected)
        CHECK(mprotect(pages, 4096, PROT_READ | PROT_WRITE) == 0);
    CHECK_OK(llcl_coll_free(plan));
}

static void read_only(struct scene *scene)
{
    unsigned char *bytes = (unsigned char *)(((uintptr_t)scene->memory.bytes + 4095) & ~(uintptr_t)4095);
    uint64_t counts[COLL_MOST], offsets[COLL_MOST], first = (uint64_t)(bytes - scene->memory.bytes) / 8;
    llcl_coll_params_t params = params_of(scene, 0, first);
    uint32_t from, i, root = scene->ranks - 1;
    params.count = 512;
    params.root = root;
    memset(bytes, 7 + (int)scene->me, 4096);
    protected_round(BROADCAST, &params, 0, bytes, scene->me == root);
    for (i = 0; i < 4096; i++)
        CHECK_EQUAL(bytes[i], 7 + root);
    /* In place: a page for each rank, of which this rank's own holds its contribution. */
    params.flags = LLCL_COLL_IN_PLACE;
    for (from = 0; from < scene->ranks; from++) {
        counts[from] = 512;
        offsets[from] = 512 * from;
    }
    params.send_counts = params.receive_counts = counts;
    params.send_offsets = params.receive_offsets = offsets;
    memset(bytes, 1, 4096 * scene->ranks);
    memset(bytes + 4096 * scene->me, 50 + (int)scene->me, 4096);
    protected_round(ALLGATHER, &params, 1, bytes + 4096 * scene->me, 1);
    for (i = 0; i < 4096 * scene->ranks; i++)
        CHECK_EQUAL(bytes[i], 50 + i / 4096);
    memset(bytes, 90 + (int)scene->me, 4096 * scene->ranks);
    params.send = llcl_region_local(scene->memory.region, 8 * first + 4096 * scene->me);
    protected_round(GATHER, &params, 1, bytes + 4096 * root, scene->me == root);
    for (i = 0; scene->me == root && i < 4096 * scene->ranks; i++)
        CHECK_EQUAL(bytes[i], 90 + i / 4096);
    memset(bytes, 90 + (int)scene->me, 4096 * scene->ranks);
    protected_round(ALLTOALL, &params, 0, bytes + 4096 * scene->me, 1);
    for (i = 0; i < 4096 * scene->ranks; i++)
        CHECK_EQUAL(bytes[i], 90 + i / 4096);
}

static void run(llcl_context_t *context)
{
    struct scene scene = {0};
    scene.context = context;
    scene.team = coll_world(context);
    scene.me = llcl_rank(context);
    scene.ranks = llcl_size(context);
    for (scene.kind = 0; scene.kind < MEMORY_KINDS; scene.kind++) {
        region_make(context, scene.kind, 4096 * (COLL_MOST + 2), &scene.memory);
        interleaved(&scene, GATHER);
        interleaved(&scene, ALLGATHER);
        read_only(&scene);
        fence(context);
        region_drop(&scene.memory);
    }
}

TEST_MAIN(run)
