/* Broken if this fails: with more ranks than cores a barrier costs time slices: each rank keeps its core
 * until the scheduler takes it away, which makes at least 40 ms for eight ranks on two cores, 6 s for
 * all. Rounds that give the core away take 0.1 to 3 ms, also beside other busy processes.
 * ranks: 8
 * engines: offload thread
 */
#include "coll.h"

#define BARRIERS 150u

static void run(llcl_context_t *context)
{
    static const char *const names[] = {NULL, "dissemination", "tree"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        llcl_coll_params_t params = {0};
        llcl_coll_t *plan = NULL;
        int64_t begin;
        uint32_t round;
        params.team = coll_world(context);
        params.algorithm = names[i];
        CHECK_OK(llcl_barrier_init(&params, &plan));
        fence(context);
        begin = now_ns();
        for (round = 0; round < BARRIERS; round++) {
            CHECK_OK(llcl_coll_start(plan));
            CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        }
        begin = now_ns() - begin;
        if (llcl_rank(context) == 0)
            printf("%s: %lld us each\n", names[i] ? names[i] : "chosen",
                   (long long)(begin / BARRIERS / 1000));
        CHECK(begin < TEST_PATIENCE_NS / 2);
        CHECK_OK(llcl_coll_free(plan));
    }
}

TEST_MAIN(run)
