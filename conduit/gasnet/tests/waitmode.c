/* Does a thread that waits in GASNET_WAIT_BLOCK yield its core to the ranks that it waits for, and
 * sleep only if these take long? (A sleep in each barrier made barriers a thousand times
 * slower.) */
#include "t.h"

#include <sys/resource.h>

#define BATCHES 30
#define BARRIERS 20

/* The number of times that this thread has slept. */
static long sleeps(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

/* The number of times that the first thread of another rank has slept. */
static long sleeps_of(long pid) {
    char path[64], line[256];
    long count = -1;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", pid, pid);
    FILE *file = fopen(path, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "voluntary_ctxt_switches: %ld", &count) != 1) {
    }
    fclose(file);
    CHECK(count >= 0);
    return count;
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
        long fewest = BARRIERS;
        for (int batch = 0; batch < BATCHES; batch++) {
            long before = sleeps();
            for (int i = 0; i < BARRIERS; i++) {
                barrier();
                gasnet_barrier_notify(i, 0);
                EQUAL(gasnet_barrier_wait(i, 0), GASNET_OK);
            }
            fewest = sleeps() - before < fewest ? sleeps() - before : fewest;
        }
        /* On one node. Other programs may keep a rank from its core for a while, so a wait may be
         * long, but not in every batch. Over a wire each message waits for the thread that
         * polls. */
        CHECK(near < all || fewest < BARRIERS / 2);
    }
    /* A long wait sleeps, and still ends: rank 0 enters the barrier after the kernel's table shows
     * that the other ranks have slept. */
    EQUAL(gasnet_set_waitmode(GASNET_WAIT_BLOCK), GASNET_OK);
    gex_RMA_PutBlockingVal(tm, me, base_of(me), (gex_RMA_Value_t)getpid(), 8, 0);
    barrier();
    for (unsigned r = 1; me == 0 && near == all && r < all; r++) {
        long pid = (long)gex_RMA_GetBlockingVal(tm, r, base_of(r), 8, 0), before = sleeps_of(pid);
        while (sleeps_of(pid) == before) {
            usleep(1000);
        }
    }
    barrier();
    end();
}
