/* Broken if this fails: llcl_finalize waits for ever for a call of llcl_X_async that the other
 * ranks do not make, loses or doubles its completion, or ends with an error one that they do make.
 * ranks: 2 3
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

static void barrier(llcl_team_t *team, uint32_t depth, struct seen *seen)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    params.team = team;
    params.depth = depth; /* each is a call of its own */
    params.on_complete = llcl_callback(fire, seen);
    CHECK_OK(llcl_barrier_async(&params));
}

static void run(llcl_context_t *context)
{
    llcl_team_t *world = coll_world(context);
    uint32_t me = llcl_rank(context), i;
    struct seen *seen = calloc(5, sizeof *seen);
    CHECK(seen != NULL);
    /* Made by all: one that is kept by now, one that may be made ready still. */
    barrier(world, 1, &seen[0]);
    AWAIT(&seen[0].fired, 1);
    barrier(world, 1, &seen[1]);
    barrier(world, 2, &seen[2]);
    /* Made by rank 0 alone: one that is being made ready, one behind it. */
    for (i = 3; me == 0 && i < 5; i++)
        barrier(world, i, &seen[i]);
    CHECK_OK(test_finalize(context));
    for (i = 0; i < 3; i++) {
        CHECK_EQUAL(word_get(&seen[i].fired), 1);
        CHECK_OK((llcl_status_t)seen[i].status);
    }
    for (i = 3; i < 5; i++) {
        CHECK_EQUAL(word_get(&seen[i].fired), me == 0);
        CHECK(me != 0 || seen[i].status == LLCL_ERR_CANCELED);
    }
    free(seen);
}

int main(void)
{
    coll_default("LLCL_FINALIZE_MS", "300");
    return test_main(run, NULL);
}
