/* Overhead as listing 6 of the paper measures it: t1 - t0 is what the caller pays to post one
 * request; then it waits for the callback. The time begins when the wait for the previous request
 * ends. It ends when the call has returned and all its loads have completed. */
#include "world.h"

#define SAMPLES 20000
#define BURST 64

static const char *about = "Post overhead t1 - t0 of 8-byte requests, one at a time (timer included).";
static double samples[SAMPLES] __attribute__((aligned(2 * BENCH_LINE)));
static uint64_t flag __attribute__((aligned(2 * BENCH_LINE)));

static uint64_t posted __attribute__((aligned(2 * BENCH_LINE))); /* on another line than the flag, which another core writes */

/* Counts instead of setting a flag. To clear a flag the poster would have to fetch its cache line
 * back from the thread that ran the callback, and the next post would wait for that. */
static void count(void *data, llcl_status_t status)
{
    uint64_t *fired = data;
    __atomic_store_n(fired, status == LLCL_OK ? *fired + 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

/* Reads the clock when all loads before it have completed. Without the barrier a processor that
 * predicts the end of the wait reads t0 while it still waits for the flag's cache line, and t1
 * while the call is under way. Then t1 - t0 contains the rest of the wait for the previous request,
 * which is no part of the post. The barrier does not wait for stores of the call, since a caller
 * does not wait for them either. */
static inline uint64_t ordered_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return bench_ticks();
}

static double once(const bench_world_t *world, const bench_request_t *request)
{
    posted++;
    uint64_t t0 = ordered_ticks();
    bench_post(world->context, request->op, request);
    uint64_t t1 = ordered_ticks();
    bench_wait(&flag, posted);
    return (double)(t1 - t0);
}

static double empty(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t t0 = ordered_ticks();
        samples[i] = (double)(ordered_ticks() - t0);
    }
    return bench_percentile(samples, count, 50);
}

static void measure(bench_world_t *world, const bench_options_t *options, bench_op_t op, bench_memory_t memory, uint32_t flags)
{
    size_t samples_taken = options->quick ? 4000 : SAMPLES;
    int lane = world->execution == LLCL_EXECUTION_OFFLOAD || flags != 0;
    char what[64], cycles[80];
    snprintf(what, sizeof what, "%s %s%s", bench_op_name(op), memory == BENCH_MAPPED ? "mapped" : "registered",
             flags ? " deferred" : "");
    snprintf(cycles, sizeof cycles, "%s in ticks", what);
    bench_record_t ns = {.what = what, .unit = "ns", .limit_name = lane ? "cache line one way" : "empty t1-t0", .ranks = (int)world->size, .threads = 1,
                         .size = 8, .count = samples_taken};
    bench_record_t ticks = ns;
    ticks.what = cycles;
    ticks.unit = "ticks";
    if (world->execution == LLCL_EXECUTION_OFFLOAD && lane && flags == 0)
        ns.target = "value<=60";
    bench_request_t request = world_request(world, op, memory, 0, 8, llcl_callback(count, &flag), flags);
    __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
    posted = 0;
    for (int i = 0; i < options->repeats; i++) {
        double rate = bench_ticks_per_ns(), limit = lane ? world_two_hand_overs(world) / 2 * rate : empty(samples_taken);
        for (size_t k = 0; k < 200; k++)
            once(world, &request);
        for (size_t k = 0; k < samples_taken; k++)
            samples[k] = once(world, &request);
        double p99 = bench_percentile(samples, samples_taken, 99), median = bench_percentile(samples, samples_taken, 50);
        bench_add(&ticks.series, limit, median, p99);
        bench_add(&ns.series, limit / rate, median / rate, p99 / rate);
    }
    world_verify(world, op, memory, 8, flags);
    bench_emit(&ns);
    bench_emit(&ticks);
}

/* Posts a burst of requests without a wait between them. The clock is read once for the burst, so
 * neither its cost nor its step shows. The burst fits into the queue, and ends before the next one
 * begins. */
static void measure_burst(bench_world_t *world, const bench_options_t *options, bench_op_t op, uint32_t flags)
{
    size_t bursts = options->quick ? 100 : 400;
    char what[64];
    snprintf(what, sizeof what, "%s mapped%s; %d in a row", bench_op_name(op), flags ? " deferred" : "", BURST);
    bench_record_t record = {.what = what, .unit = "ns", .limit_name = "plain function", .ranks = (int)world->size, .threads = 1,
                             .size = 8, .count = bursts * BURST};
    bench_request_t request = world_request(world, op, BENCH_MAPPED, 0, 8, llcl_add_on(&flag), flags);
    char which = op == BENCH_WRITE ? 'w' : op == BENCH_READ ? 'r' : 'f';
    for (int i = 0; i < options->repeats; i++) {
        double limit = limits_plain(world->limits, which, 100000);
        for (size_t k = 0; k < bursts; k++) {
            __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
            uint64_t t0 = bench_ticks();
            for (int n = 0; n < BURST; n++)
                bench_post(world->context, op, &request);
            samples[k] = (double)(bench_ticks() - t0) / BURST;
            bench_wait(&flag, BURST);
        }
        double rate = bench_ticks_per_ns(), p99 = bench_percentile(samples, bursts, 99);
        bench_add(&record.series, limit, bench_percentile(samples, bursts, 50) / rate, p99 / rate);
    }
    bench_emit(&record);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    world_open(&world, &options, 4096);
    if (options.show) {
        bench_begin(&options, about);
        for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
            measure(&world, &options, (bench_op_t)op, BENCH_MAPPED, 0);
        for (int op = BENCH_WRITE; op <= BENCH_READ; op++)
            measure(&world, &options, (bench_op_t)op, BENCH_REGISTERED, 0);
        for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
            measure(&world, &options, (bench_op_t)op, BENCH_MAPPED, LLCL_FLAG_DEFER);
        for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
            measure_burst(&world, &options, (bench_op_t)op, 0);
        for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
            measure_burst(&world, &options, (bench_op_t)op, LLCL_FLAG_DEFER);
        char step[160];
        snprintf(step, sizeof step, "the clock takes %.0f ns and moves in steps of that order; the rows \"%d in a row\" are finer",
                 limits_ticks(100000), BURST);
        bench_note(step);
        bench_note("ticks: of the processor's time stamp counter (rdtsc), not of its possibly faster clock");
        bench_end();
    }
    world_close(&world);
    return 0;
}
