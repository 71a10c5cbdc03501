/* Broken if this fails: a plan whose last round another rank's thread has ended counts as under way
 * although it was freed, so the progress thread looks for work without an end.
 * ranks: 2
 * modes: auto offload
 */
#include "coll.h"
#include <sys/resource.h>

#define PLANS 200
#define IDLE_MS 300
#define WAKES 500 /* at most in that time; each look would be one, some 800 of them */

static long sleeps(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    struct shared own; /* the other rank maps the word, so that its threads may change it */
    int i;
    long before;
    region_make(context, ALLOCATED, 64, &own);
    params.team = coll_world(context);
    params.on_complete = llcl_store_on(own.words);
    for (i = 0; i < PLANS; i++) {
        llcl_coll_t *plan;
        word_set(own.words, 0);
        CHECK_OK(llcl_barrier_init(&params, &plan));
        CHECK_OK(llcl_coll_start(plan));
        AWAIT(own.words, 1);
        CHECK_OK(llcl_coll_free(plan));
    }
    fence(context);
    sleep_ms(50);
    before = sleeps();
    sleep_ms(IDLE_MS);
    /* A network is polled. */
    CHECK(sleeps() - before < WAKES || !is_near(context, 1 - llcl_rank(context)));
    fence(context);
    region_drop(&own);
}

TEST_MAIN(run)
