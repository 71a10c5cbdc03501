/* Broken if this fails: llcl_team_create at a rank whose table of names is full hangs, or leaves
 * the others waiting; the refusals fill a table of their own; or teams cannot be made once there is
 * room again.
 * ranks: 2 3
 * modes: auto
 */
#include "coll.h"

#define MOST 1200
#define REFUSALS 100

/* Rank 0 fills its table by teams of itself. In the end a few entries may be left: which ones a
 * name can take is chance. */
static uint32_t fill(llcl_context_t *context, llcl_team_t **teams)
{
    uint32_t self = 0, made = 0, refused = 0;
    while (refused < 400) {
        llcl_status_t status = llcl_team_create(context, &self, 1, &teams[made]);
        CHECK(status == LLCL_OK || status == LLCL_ERR_NO_MEMORY);
        made += status == LLCL_OK;
        refused += status != LLCL_OK;
        CHECK(made < MOST);
    }
    return made;
}

static void run(llcl_context_t *context)
{
    static llcl_team_t *teams[MOST];
    llcl_team_t *team = NULL;
    uint32_t made = 0, i, ranks[3] = {0, 1, 2}, n = llcl_size(context), told = 0;
    if (llcl_rank(context) == 0)
        made = fill(context, teams);
    for (i = 0; i < REFUSALS; i++) {
        llcl_status_t status = llcl_team_create(context, ranks, n, &team);
        if (status == LLCL_OK)
            CHECK_OK(llcl_team_free(team));
        else
            CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
        told += status != LLCL_OK;
    }
    CHECK(told > REFUSALS / 2);
    for (i = 0; i < made; i++)
        CHECK_OK(llcl_team_free(teams[i]));
    CHECK_OK(llcl_team_create(context, ranks, n, &team));
    CHECK_OK(llcl_team_barrier(team));
    CHECK_OK(llcl_team_free(team));
}

TEST_MAIN(run)
