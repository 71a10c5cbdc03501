/* Broken if this fails: a split puts ranks into the wrong team or order, a team's numbers are
 * wrong, a freed team is taken for a live one, or collectives of disjoint teams get in each other's
 * way.
 * ranks: 1 2 3 5 8
 * modes: auto direct
 * threads: 2 3
 */
#include "coll.h"

static struct coll_memory memory_of(llcl_context_t *context)
{
    struct coll_memory memory;
    coll_memory_make(context, ALLOCATED, 1 << 16, &memory);
    return memory;
}

/* The members are as expected, and an allgather of their world numbers agrees. */
static void check_team(llcl_context_t *context, llcl_team_t *team, const uint32_t *members, uint32_t size,
                       struct coll_memory *memory)
{
    llcl_coll_params_t params = {0};
    uint32_t *words = (uint32_t *)(void *)memory->shared.bytes, i;
    uint32_t me = llcl_team_rank(team);
    CHECK_EQUAL(llcl_team_size(team), size);
    CHECK(me < size);
    CHECK_EQUAL(members[me], llcl_rank(context));
    for (i = 0; i < size; i++)
        CHECK_EQUAL(llcl_team_peer(team, i), members[i]);
    CHECK_EQUAL(llcl_team_peer(team, size), UINT32_MAX);
    CHECK_EQUAL(llcl_team_peer(team, UINT32_MAX), UINT32_MAX);
    memset(words, 0xff, 4 * size + 4);
    words[size] = llcl_rank(context);
    params.team = team;
    params.send = llcl_region_local(memory->shared.region, 4 * size);
    params.receive = llcl_region_local(memory->shared.region, 0);
    params.count = 1;
    params.type = LLCL_TYPE_U32;
    CHECK_OK(llcl_allgather(&params));
    for (i = 0; i < size; i++)
        CHECK_EQUAL(words[i], members[i]);
    CHECK_OK(llcl_team_barrier(team));
}

/* The ranks of the world that give the same colour as `colour`, by key, then by number. */
static uint32_t expected(uint32_t ranks, uint32_t (*colour_of)(uint32_t), uint32_t (*key_of)(uint32_t),
                         uint32_t colour, uint32_t *members)
{
    uint32_t r, i, size = 0;
    for (r = 0; r < ranks; r++) {
        if (colour_of(r) != colour)
            continue;
        for (i = size++; i > 0 && key_of(members[i - 1]) > key_of(r); i--)
            members[i] = members[i - 1];
        members[i] = r;
    }
    return size;
}

static uint32_t same(uint32_t r) { return r - r + 7; }
static uint32_t itself(uint32_t r) { return r; }
static uint32_t parity(uint32_t r) { return r % 2; }
static uint32_t large(uint32_t r) { return UINT32_MAX - 1 - r % 3; }
static uint32_t backward(uint32_t r) { return UINT32_MAX - r; }
static uint32_t folded(uint32_t r) { return r * 5 % 3; }
static uint32_t some_none(uint32_t r) { return r % 3 == 1 ? LLCL_TEAM_NONE : r % 2; }
static uint32_t all_none(uint32_t r) { return r - r + LLCL_TEAM_NONE; }

static void splits(llcl_context_t *context, llcl_team_t *world, struct coll_memory *memory)
{
    static uint32_t (*const colours[])(uint32_t) = {same, itself, parity, large, some_none, all_none};
    static uint32_t (*const keys[])(uint32_t) = {same, itself, backward, folded};
    uint32_t me = llcl_rank(context), members[COLL_MOST], size;
    size_t c, k;
    for (c = 0; c < sizeof colours / sizeof colours[0]; c++)
        for (k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            llcl_team_t *team = (llcl_team_t *)0x10;
            CHECK_OK(llcl_team_split(world, colours[c](me), keys[k](me), &team));
            if (colours[c](me) == LLCL_TEAM_NONE) {
                CHECK(team == NULL);
                continue;
            }
            CHECK(team != NULL && team != world);
            size = expected(llcl_size(context), colours[c], keys[k], colours[c](me), members);
            check_team(context, team, members, size, memory);
            CHECK_OK(llcl_team_free(team));
        }
}

/* Teams of teams down to one rank; a parent may go first, and the plans of a team outlive it. */
static void nested(llcl_context_t *context, llcl_team_t *world)
{
    llcl_team_t *team = world, *next = NULL;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plans[8];
    uint32_t depth = 0, i, expected_peer;
    while (llcl_team_size(team) > 1) {
        uint32_t me = llcl_team_rank(team), size = llcl_team_size(team), half = (size + 1) / 2;
        expected_peer = llcl_team_peer(team, me < half ? half - 1 : size - 1);
        CHECK_OK(llcl_team_split(team, me < half, size - me, &next)); /* reversed */
        CHECK_EQUAL(llcl_team_size(next), me < half ? half : size - half);
        CHECK_EQUAL(llcl_team_peer(next, 0), expected_peer);
        CHECK_EQUAL(llcl_team_peer(next, llcl_team_rank(next)), llcl_rank(context));
        if (team != world)
            CHECK_OK(llcl_team_free(team));
        team = next;
        params.team = team;
        CHECK(depth < 8);
        CHECK_OK(llcl_barrier_init(&params, &plans[depth++]));
    }
    if (team != world)
        CHECK_OK(llcl_team_free(team));
    for (i = depth; i-- > 0;) {
        CHECK_OK(llcl_coll_start(plans[i]));
        CHECK_OK(llcl_coll_wait(plans[i], TEST_PATIENCE_NS));
        CHECK_OK(llcl_coll_free(plans[i]));
    }
}

static void freed_and_null(llcl_context_t *context, llcl_team_t *world)
{
    llcl_team_t *team = NULL, *other = NULL;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    CHECK_OK(llcl_team_split(world, 0, 0, &team));
    CHECK_OK(llcl_team_free(team));
    CHECK_STATUS(llcl_team_free(team), LLCL_ERR_STATE);
    CHECK_EQUAL(llcl_team_rank(team), UINT32_MAX);
    CHECK_EQUAL(llcl_team_size(team), 0);
    CHECK_EQUAL(llcl_team_peer(team, 0), UINT32_MAX);
    CHECK_STATUS(llcl_team_split(team, 0, 0, &other), LLCL_ERR_STATE);
    params.team = team;
    CHECK_STATUS(llcl_barrier_init(&params, &plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_barrier(team), LLCL_ERR_STATE);
    CHECK(plan == NULL && other == NULL);
    CHECK_STATUS(llcl_team_free(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_split(NULL, 0, 0, &other), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_world(NULL, &other), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_world(context, NULL), LLCL_ERR_INVALID);
    CHECK_EQUAL(llcl_team_rank(NULL), UINT32_MAX);
    CHECK_EQUAL(llcl_team_size(NULL), 0);
    CHECK_EQUAL(llcl_team_peer(NULL, 0), UINT32_MAX);
    /* The team of all is the context's: the same each time, and freeing it does nothing. */
    CHECK_OK(llcl_team_world(context, &other));
    CHECK(other == world);
    CHECK_OK(llcl_team_free(world));
    CHECK_EQUAL(llcl_team_size(world), llcl_size(context));
    CHECK_EQUAL(llcl_team_rank(world), llcl_rank(context));
}

/* Each half on its own: one does many collectives while the other does few. */
static void disjoint(llcl_context_t *context, llcl_team_t *world, struct coll_memory *memory)
{
    struct coll_case asked = {0};
    uint32_t me = llcl_rank(context), i;
    llcl_team_t *team = NULL;
    CHECK_OK(llcl_team_split(world, me % 2, 0, &team));
    asked.team = team;
    asked.type = LLCL_TYPE_U16;
    asked.op = LLCL_OP_MAX;
    asked.count = 99;
    for (i = 0; i < (me % 2 ? 20u : 60u); i++) {
        asked.operation = (int)(i % OPERATIONS);
        asked.seed = i;
        CHECK_OK(coll_whole(&asked, memory, 2));
    }
    CHECK_OK(llcl_team_free(team));
}

static void run(llcl_context_t *context)
{
    llcl_team_t *world = coll_world(context);
    struct coll_memory memory = memory_of(context);
    uint32_t members[COLL_MOST], r;
    for (r = 0; r < llcl_size(context); r++)
        members[r] = r;
    check_team(context, world, members, llcl_size(context), &memory);
    splits(context, world, &memory);
    nested(context, world);
    freed_and_null(context, world);
    disjoint(context, world, &memory);
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
