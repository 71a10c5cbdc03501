/* Broken if this fails: llcl_finalize with plans that were not freed hangs, or loses or doubles the
 * completion of a round that is under way and cannot end.
 * ranks: 1 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

struct seen {
    uint64_t fired;
    int64_t status;
};

static void fire(void *data, llcl_status_t status)
{
    struct seen *seen = data;
    seen->status = status;
    word_add(&seen->fired, 1);
}

static llcl_coll_t *barrier(llcl_team_t *team, struct seen *seen)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    params.on_complete = llcl_callback(fire, seen);
    CHECK_OK(llcl_barrier_init(&params, &plan));
    return plan;
}

static void run(llcl_context_t *context)
{
    llcl_team_t *world = coll_world(context), *half = NULL;
    uint32_t me = llcl_rank(context), ranks = llcl_size(context);
    struct seen *seen = calloc(6, sizeof *seen); /* idle, ended, not looked at, started, alone, of a team */
    llcl_coll_t *plans[6];
    int i;
    CHECK(seen != NULL);
    CHECK_OK(llcl_team_split(world, me % 2, me, &half));
    for (i = 0; i < 6; i++)
        plans[i] = barrier(i == 5 ? half : world, &seen[i]);
    CHECK_OK(llcl_coll_start(plans[1]));
    CHECK_OK(llcl_coll_wait(plans[1], TEST_PATIENCE_NS));
    CHECK_OK(llcl_coll_start(plans[2]));
    AWAIT(&seen[2].fired, 1);
    /* The library may have to end this one within llcl_finalize. */
    CHECK_OK(llcl_coll_start(plans[3]));
    if (me == 0 && ranks > 1)
        CHECK_OK(llcl_coll_start(plans[4]));
    CHECK_OK(test_finalize(context));
    CHECK_EQUAL(word_get(&seen[0].fired), 0);
    CHECK_EQUAL(word_get(&seen[5].fired), 0);
    for (i = 1; i <= 3; i++) {
        CHECK_EQUAL(word_get(&seen[i].fired), 1);
        CHECK_OK((llcl_status_t)seen[i].status);
    }
    CHECK_EQUAL(word_get(&seen[4].fired), me == 0 && ranks > 1);
    if (seen[4].fired)
        CHECK_STATUS((llcl_status_t)seen[4].status, LLCL_ERR_CANCELED);
    sleep_ms(20);
    CHECK_EQUAL(word_get(&seen[4].fired), me == 0 && ranks > 1);
    free(seen);
}

int main(void)
{
    coll_default("LLCL_FINALIZE_MS", "100");
    return test_main(run, NULL);
}
