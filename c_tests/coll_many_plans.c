/* Broken if this fails: plans that are under way at the same time, of one team or of teams that
 * share ranks, started and waited for in an order that differs from rank to rank, mix up their data
 * or lock up.
 * ranks: 1 2 3 5 8
 * engines: offload thread
 * modes: auto direct
 * threads: 2 3
 */
#include "coll.h"

#define PLANS 12u
#define ROUNDS 40u

/* A permutation of 0 to PLANS-1 that depends on the rank and the round. */
static void shuffle(uint64_t seed, uint32_t *order)
{
    uint32_t i;
    for (i = 0; i < PLANS; i++)
        order[i] = i;
    for (i = PLANS - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(coll_mix(seed + i) % (i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static void run(llcl_context_t *context)
{
    struct coll_run runs[PLANS];
    struct coll_memory memory;
    llcl_team_t *teams[3] = {NULL, NULL, NULL};
    uint32_t me = llcl_rank(context), order[PLANS], i, round;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 19, &memory);
    teams[0] = coll_world(context);
    CHECK_OK(llcl_team_split(teams[0], me % 2, me, &teams[1]));
    CHECK_OK(llcl_team_split(teams[0], me / 2, 100 - me, &teams[2]));
    for (i = 0; i < PLANS; i++) {
        struct coll_case asked = {0};
        asked.team = teams[i % 5 == 3 ? 1 : i % 5 == 4 ? 2 : 0];
        asked.operation = (int)(i % OPERATIONS);
        asked.count = i % 4 ? 100 * i + 1 : 3;
        asked.type = LLCL_TYPE_U32;
        asked.op = LLCL_OP_ADD;
        asked.root = coll_operations[asked.operation].rooted ? i % llcl_team_size(asked.team) : 0;
        asked.seed = i + 50;
        /* One engine at one rank, another at the next: the schedule is the same. */
        if (i % 4 == 3)
            asked.engine = me % 2 ? LLCL_ENGINE_THREAD : LLCL_ENGINE_OFFLOAD;
        CHECK_OK(coll_make(&runs[i], &asked, &memory, &memory));
    }
    for (round = 0; round < ROUNDS; round++) {
        shuffle(me * 1000 + round, order);
        for (i = 0; i < PLANS; i++)
            coll_start(&runs[order[i]]);
        shuffle(me * 1000 + round + 500, order);
        for (i = 0; i < PLANS; i++)
            coll_finish(&runs[order[i]]);
    }
    /* One plan at a time: ranks that nobody has to wait for are a few rounds ahead. */
    for (i = 0; i < PLANS; i++)
        coll_rounds(&runs[i], 1 + i % 5);
    for (i = 0; i < PLANS; i++)
        coll_drop(&runs[i]);
    CHECK_OK(llcl_team_free(teams[1]));
    CHECK_OK(llcl_team_free(teams[2]));
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
