/* Broken if this fails: a process that has a context open and does nothing uses the processor: more
 * than 1 % of two seconds, after it has communicated.
 * ranks: 2
 * cma: on
 */
#include "shared.h"

#include <sys/resource.h>

static int64_t processor_ns(void)
{
    struct rusage used;
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), i;
    struct shared targets[MEMORY_KINDS];
    struct tally tally = {0, 0, 0};
    int64_t used;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, 64, &targets[kind]);
        for (i = 0; i < 1000; i++) {
            llcl_fetch_add_params_t add = {0};
            add.peer = peer;
            add.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
            add.target = remote_at(&targets[kind], peer, 0);
            add.on_complete = count_in(&tally);
            POST(llcl_try_fetch_add_async(context, &add));
        }
    }
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    sleep_ms(50); /* progress threads stay awake for a while after their last work */
    used = processor_ns();
    sleep_ms(2000);
    used = processor_ns() - used;
    printf("used %lld us of 2 s\n", (long long)used / 1000);
    CHECK(used < 20000000);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
}

TEST_MAIN(run)
