/* Broken if this fails: a region that accepted operations still use as their local side can be freed
 * under them; or stays busy after they have completed.
 * ranks: 2
 * cma: off
 */
#include "stopped.h"

static void check(llcl_context_t *context, const struct shared *target)
{
    struct shared mine, idle;
    struct tally tally = {0, 0, 0};
    llcl_read_params_t read = {0};
    pid_t stopped;
    int i;
    region_make(context, ALLOCATED, 4096, &mine);
    region_make(context, REGISTERED, 4096, &idle);
    stopped = peer_stop(context, 1);
    read.peer = 1;
    read.source = remote_at(target, 1, 0);
    read.destination = llcl_region_local(mine.region, 0);
    read.size = 64;
    read.on_complete = count_in(&tally);
    POST(llcl_try_read_async(context, &read));
    for (i = 0; i < 20; i++) {
        CHECK_STATUS(llcl_region_free(mine.region), LLCL_RETRY_BUSY);
        usleep(500);
    }
    region_drop(&idle);
    /* Refused means unchanged: the region is still good. */
    CHECK_EQUAL(llcl_region_size(mine.region), 4096);
    POST(llcl_try_read_async(context, &read));
    CHECK_EQUAL(word_get(&tally.fired), 0);
    CHECK(kill(stopped, SIGCONT) == 0);
    AWAIT(&tally.fired, 2);
    CHECK_EQUAL(tally.failed, 0);
    CHECK(pattern_holds(mine.bytes, 64, 5));
    /* By the time of the second completion the first one's hold on it is gone too, soon. */
    region_drop(&mine);
}

static void run(llcl_context_t *context)
{
    struct shared target;
    share(context, REGISTERED, 64, &target);
    pattern_fill(target.bytes, 64, 5);
    fence(context);
    if (llcl_rank(context) == 0)
        check(context, &target);
    share_end(context, &target);
}

TEST_MAIN(run)
