/* Broken if this fails: with more ranks than cores a rank that waits in a barrier keeps its core
 * until the scheduler takes it away. What counts is the processor time of the ranks, which other
 * busy processes change little: those that keep the core use it all the time, 6 to 11 ms of each
 * rank for a barrier of eight ranks on two cores; those that give it away 0.01 to 0.1 ms, and up to
 * 1.1 ms with engine `thread` beside a busy process, since its progress threads poll for a while.
 * ranks: 8
 * engines: offload thread
 * timeout: 60
 */
#include "coll.h"

#define BARRIERS 50u
#define MOST_NS 4000000 /* of a rank for one barrier */

/* Of all threads of this process. */
static int64_t processor_ns(void)
{
    struct timespec used;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void run(llcl_context_t *context)
{
    static const char *const names[] = {NULL, "dissemination", "tree"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        llcl_coll_params_t params = {0};
        llcl_coll_t *plan = NULL;
        int64_t used;
        uint32_t round;
        params.team = coll_world(context);
        params.algorithm = names[i];
        CHECK_OK(llcl_barrier_init(&params, &plan));
        fence(context);
        used = processor_ns();
        for (round = 0; round < BARRIERS; round++) {
            CHECK_OK(llcl_coll_start(plan));
            CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        }
        used = processor_ns() - used;
        if (llcl_rank(context) == 0)
            printf("%s: %lld us of the processor each\n", names[i] ? names[i] : "chosen",
                   (long long)(used / BARRIERS / 1000));
        CHECK(used < (int64_t)BARRIERS * MOST_NS);
        CHECK_OK(llcl_coll_free(plan));
    }
}

TEST_MAIN(run)
