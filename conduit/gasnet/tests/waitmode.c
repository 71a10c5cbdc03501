/* Does a thread that waits in GASNET_WAIT_BLOCK give its core to the ranks that it waits for, and
 * sleep only if these take long? (A sleep in each barrier made barriers a thousand times slower.) */
#include "t.h"

#include <sys/resource.h>

#define BARRIERS 400

/* How often this thread has slept so far. */
static long sleeps(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

int main(void) {
    gex_Rank_t near;
    begin(NULL, 0);
    gex_System_SetVerboseErrors(0);
    EQUAL(gasnet_set_waitmode(77), GASNET_ERR_BAD_ARG);
    gex_System_QueryNbrhdInfo(NULL, &near, NULL);
    int modes[] = {GASNET_WAIT_BLOCK, GASNET_WAIT_SPINBLOCK, GASNET_WAIT_SPIN};
    for (int m = 0; m < 3; m++) {
        EQUAL(gasnet_set_waitmode(modes[m]), GASNET_OK);
        long before = sleeps();
        for (int i = 0; i < BARRIERS; i++) {
            barrier();
            gasnet_barrier_notify(i, 0);
            EQUAL(gasnet_barrier_wait(i, 0), GASNET_OK);
        }
        /* On one node: other programs may keep a rank from its core, so some waits may be long.
         * Over a wire each message waits for the thread that polls the wire. */
        CHECK(near < all || sleeps() - before < BARRIERS / 4);
    }
    /* A wait that is long sleeps, and ends all the same. */
    EQUAL(gasnet_set_waitmode(GASNET_WAIT_BLOCK), GASNET_OK);
    if (me == 0) {
        usleep(50000);
    }
    long before = sleeps();
    barrier();
    CHECK(me == 0 || near < all || sleeps() > before);
    end();
}
