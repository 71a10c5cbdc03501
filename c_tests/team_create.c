/* Broken if this fails: a team made from a list has other ranks or another order than the list, a
 * rank that is not on the list is needed for it, teams of one list get in each other's way, or a
 * bad list is not refused.
 * ranks: 1 2 3 5 8
 * modes: auto direct
 * threads: 3
 */
#include "coll.h"

/* An allgather of world numbers gives the list. */
static void check_team(llcl_team_t *team, const uint32_t *ranks, uint32_t n, struct shared *memory)
{
    llcl_coll_params_t params = {0};
    uint32_t *words = (uint32_t *)(void *)memory->bytes, i;
    CHECK_EQUAL(llcl_team_size(team), n);
    words[n] = llcl_team_peer(team, llcl_team_rank(team));
    params.team = team;
    params.send = llcl_region_local(memory->region, 4 * n);
    params.receive = llcl_region_local(memory->region, 0);
    params.count = 1;
    params.type = LLCL_TYPE_U32;
    CHECK_OK(llcl_allgather(&params));
    for (i = 0; i < n; i++) {
        CHECK_EQUAL(words[i], ranks[i]);
        CHECK_EQUAL(llcl_team_peer(team, i), ranks[i]);
        CHECK_EQUAL(llcl_team_find(team, ranks[i]), i);
    }
    CHECK_OK(llcl_team_barrier(team));
}

/* Every set of ranks with this one in it, in rising order and turned; the others do theirs at the
 * same time. */
static void sets(llcl_context_t *context, struct shared *memory)
{
    uint32_t size = llcl_size(context), me = llcl_rank(context), most = size < 5 ? size : 5;
    uint32_t set, turn, ranks[5], n, i;
    for (set = 1; set < 1u << most; set++) {
        for (n = i = 0; i < most; i++)
            if (set >> i & 1)
                ranks[n++] = size - most + i;
        for (turn = 0; turn < n && turn < 2; turn++) {
            uint32_t first = ranks[0];
            llcl_team_t *team = NULL;
            if (me >= size - most && set >> (me - (size - most)) & 1) {
                CHECK_OK(llcl_team_create(context, ranks, n, &team));
                check_team(team, ranks, n, memory);
                CHECK_EQUAL(llcl_team_find(team, size), UINT32_MAX);
                CHECK_OK(llcl_team_free(team));
                CHECK_EQUAL(llcl_team_find(team, me), UINT32_MAX);
            }
            memmove(ranks, ranks + 1, (n - 1) * sizeof *ranks);
            ranks[n - 1] = first;
        }
    }
}

/* Several teams of one list that live at the same time, ended in another order than they were
 * made. */
static void alike(llcl_context_t *context, struct shared *memory)
{
    uint32_t size = llcl_size(context), ranks[COLL_MOST], i;
    llcl_team_t *teams[4];
    for (i = 0; i < size; i++)
        ranks[i] = size - 1 - i;
    for (i = 0; i < 4; i++)
        CHECK_OK(llcl_team_create(context, ranks, size, &teams[i]));
    for (i = 4; i-- > 0;)
        check_team(teams[i], ranks, size, memory);
    for (i = 0; i < 4; i++)
        CHECK_OK(llcl_team_free(teams[i ^ 1]));
}

static void refused(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), ranks[2] = {me, me};
    llcl_team_t *team = NULL;
    CHECK_STATUS(llcl_team_create(NULL, ranks, 1, &team), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_create(context, NULL, 1, &team), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_create(context, ranks, 1, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_create(context, ranks, 0, &team), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_team_create(context, ranks, 2, &team), LLCL_ERR_INVALID); /* twice */
    ranks[1] = size;
    /* In a world of one rank the list is too long before it is wrong. */
    CHECK_STATUS(llcl_team_create(context, ranks, 2, &team), size == 1 ? LLCL_ERR_INVALID : LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_team_create(context, ranks, UINT32_MAX, &team), LLCL_ERR_INVALID);
    ranks[0] = (me + 1) % size;
    if (size > 1)
        CHECK_STATUS(llcl_team_create(context, ranks, 1, &team), LLCL_ERR_INVALID); /* not on it */
    CHECK(team == NULL);
    CHECK_EQUAL(llcl_team_find(NULL, 0), UINT32_MAX);
}

static void run(llcl_context_t *context)
{
    struct shared memory;
    region_make(context, ALLOCATED, 4096, &memory);
    refused(context);
    sets(context, &memory);
    alike(context, &memory);
    fence(context);
    region_drop(&memory);
}

TEST_MAIN(run)
