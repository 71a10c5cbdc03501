/* Broken if this fails: a process uses the processor, more than 2 % of a second, although it does
 * nothing after it has communicated, or waits in the library: for a word, for a round of a
 * collective.
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

#define SPAN_MS 1000

/* What the process has used since `since`, of the span. */
static void check_used(const char *what, int64_t since)
{
    int64_t used = processor_ns() - since;
    printf("%s: used %lld us of %d ms\n", what, (long long)used / 1000, SPAN_MS);
    CHECK(used < SPAN_MS * INT64_C(20000));
}

/* Rank 0 comes a span late, so all others wait inside the library. */
static void waits_sleep(llcl_context_t *context)
{
    struct shared words;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    llcl_team_t *world = NULL;
    int64_t since;
    uint32_t peer = llcl_size(context) - 1;
    share(context, ALLOCATED, 64, &words);
    CHECK_OK(llcl_team_world(context, &world));
    params.team = world;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    since = processor_ns();
    if (llcl_rank(context) == 0) {
        llcl_write_value_params_t write = {0};
        sleep_ms(SPAN_MS);
        write.peer = peer;
        write.destination = remote_at(&words, peer, 0);
        write.size = 8;
        write.value = 1;
        CHECK_OK(llcl_write_value(context, &write));
    } else {
        CHECK_OK(llcl_wait_word(context, words.words, 1, TEST_PATIENCE_NS));
    }
    check_used("waiting for a word", since);
    since = processor_ns();
    if (llcl_rank(context) == 0)
        sleep_ms(SPAN_MS);
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    check_used("waiting for a round", since);
    CHECK_OK(llcl_coll_free(plan));
    share_end(context, &words);
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
    sleep_ms(SPAN_MS);
    check_used("doing nothing", used);
    waits_sleep(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
}

TEST_MAIN(run)
