/* The cost of the first request after a long idle time, when the progress thread sleeps in the
 * kernel and the caches are cold; and the cost of the next requests. */
#include "world.h"

#define BURST 16

static const char *about =
    "First request after 50 ms without any, and the ones right behind it; the limit is a futex wake after the same time.";
static uint64_t word __attribute__((aligned(2 * BENCH_LINE)));

typedef enum waiting { WAIT_SPIN, WAIT_WORD } waiting_t;

static double once(const bench_world_t *world, const bench_request_t *request, waiting_t how)
{
    __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
    uint64_t t0 = bench_ticks();
    bench_post(world->context, request->op, request);
    if (how == WAIT_WORD) /* this thread makes progress while it waits */
        bench_check(llcl_wait_word(world->context, &word, 1, -1), "llcl_wait_word");
    bench_wait(&word, 1);
    return (double)(bench_ticks() - t0) / bench_ticks_per_ns();
}

static void measure(bench_world_t *world, const bench_options_t *options, bench_memory_t memory, uint32_t flags, waiting_t how)
{
    unsigned idle_us = 50000;
    int offload = world->execution == LLCL_EXECUTION_OFFLOAD;
    int caller_can = world->execution == LLCL_EXECUTION_AUTO && (flags == 0 || how == WAIT_WORD);
    char what[80], first[96], rest[96];
    snprintf(what, sizeof what, "write %s%s; %s", memory == BENCH_MAPPED ? "mapped" : "registered", flags ? " deferred" : "",
             how == WAIT_SPIN ? "spin" : "llcl_wait_word");
    snprintf(first, sizeof first, "first: %s", what);
    snprintf(rest, sizeof rest, "next: %s", what);
    int kernel = memory == BENCH_REGISTERED; /* the limit includes a system call with cold caches */
    bench_record_t record = {.what = first, .unit = "ns",
                             .limit_name = !kernel ? "futex wake" : offload ? "futex wake + process_vm" : "process_vm", .ranks = (int)world->size, .threads = 1,
                             .size = 8, .count = 1};
    if (caller_can)
        record.target = kernel ? "ratio<=1.5" : "ratio<=0.5"; /* the request must not pay a wake-up */
    else if (offload)
        record.target = "ratio<=1.5";
    bench_record_t next = record;
    next.what = rest;
    next.limit_name = "futex wake";
    next.count = BURST - 1;
    next.target = offload ? "ratio<=0.25" : NULL; /* the next requests must not pay a wake-up each */
    bench_request_t request = world_request(world, BENCH_WRITE, memory, 0, 8, llcl_store_on(&word), flags);
    for (int i = 0; i < options->repeats; i++) {
        double wake = world_wake(world, idle_us), behind[BURST], system_call = 0;
        if (kernel) {
            bench_sleep_us(idle_us);
            uint64_t before = bench_ticks();
            if (limits_vm_copy(world->peer_process, world->source_memory, world->peer_registered, 8, 1) == 8)
                system_call = (double)(bench_ticks() - before) / bench_ticks_per_ns();
            else
                system_call = NAN; /* the kernel refuses such calls */
        }
        bench_sleep_us(idle_us);
        double ours = once(world, &request, how);
        for (int k = 1; k < BURST; k++)
            behind[k] = once(world, &request, how);
        bench_add(&record.series, (kernel && !offload ? 0 : wake) + system_call, ours, NAN);
        bench_add(&next.series, wake, bench_percentile(behind + 1, BURST - 1, 50), NAN);
    }
    world_verify(world, BENCH_WRITE, memory, 8, flags);
    bench_emit(&record);
    bench_emit(&next);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    world_open(&world, &options, 4096);
    if (options.show) {
        bench_begin(&options, about);
        bench_ticks_per_ns();
        measure(&world, &options, BENCH_MAPPED, 0, WAIT_SPIN);
        measure(&world, &options, BENCH_REGISTERED, 0, WAIT_SPIN);
        measure(&world, &options, BENCH_MAPPED, LLCL_FLAG_DEFER, WAIT_WORD);
        if (!options.quick)
            measure(&world, &options, BENCH_MAPPED, LLCL_FLAG_DEFER, WAIT_SPIN);
        bench_note("a caller that only spins does no work for the library, so the progress thread must wake up for a deferred request");
        bench_end();
    }
    world_close(&world);
    return 0;
}
