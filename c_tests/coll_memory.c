/* Broken if this fails: plans that were freed leave memory or regions behind, whoever frees first.
 * ranks: 1 2 3
 * engines: offload thread
 */
#include "coll.h"

#define PLANS 2000u
#define LATE 20u

/* Few regions: what is not given back is missed soon. */
static void configure(llcl_config_t *config)
{
    config->regions = 64;
}

static struct coll_case nth_case(llcl_team_t *team, uint32_t i)
{
    struct coll_case asked = {0};
    asked.team = team;
    asked.operation = (int)(i % OPERATIONS);
    asked.count = i % 3 ? 20 : 700;
    asked.type = LLCL_TYPE_U32;
    asked.op = LLCL_OP_ADD;
    asked.seed = i;
    return asked;
}

static void make_and_free(llcl_team_t *team, struct coll_memory *memory, uint32_t plans)
{
    uint32_t i;
    for (i = 0; i < plans; i++) {
        struct coll_case asked = nth_case(team, i);
        CHECK_OK(coll_whole(&asked, memory, i % 4 == 0 ? 0 : 1));
    }
}

/* Rank 0 frees each plan at once, the others a lot of them late. */
static void free_late(llcl_team_t *team, struct coll_memory *memory)
{
    struct coll_run runs[LATE];
    uint32_t i, first = llcl_team_rank(team) == 0;
    for (i = 0; i < LATE; i++) {
        struct coll_case asked = nth_case(team, i);
        CHECK_OK(coll_make(&runs[i], &asked, memory, memory));
        coll_rounds(&runs[i], 1);
        if (first)
            coll_drop(&runs[i]);
    }
    CHECK_OK(llcl_team_barrier(team));
    for (i = 0; i < LATE && !first; i++)
        coll_drop(&runs[i]);
    memory->used = 0;
}

static void split_and_free(llcl_team_t *team)
{
    llcl_team_t *half = NULL;
    CHECK_OK(llcl_team_split(team, llcl_team_rank(team) % 2, 0, &half));
    CHECK_OK(llcl_team_barrier(half));
    CHECK_OK(llcl_team_free(half));
}

static void run(llcl_context_t *context)
{
    struct coll_memory memory;
    llcl_team_t *team = coll_world(context);
    uint32_t round;
    long before, after;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 19, &memory);
    make_and_free(team, &memory, 200);
    for (round = 0; round < 5; round++) {
        free_late(team, &memory);
        split_and_free(team);
    }
    before = resident_kib();
    make_and_free(team, &memory, PLANS);
    after = resident_kib();
    printf("resident: %ld KiB, after %u plans %ld KiB\n", before, PLANS, after);
    CHECK(after < before + 512);
    for (round = 0; round < 20; round++) {
        free_late(team, &memory);
        split_and_free(team);
    }
    after = resident_kib();
    printf("after %u plans that were freed late, and teams: %ld KiB\n", 20 * LATE, after);
    CHECK(after < before + 1024);
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN_CONFIG(run, configure)
