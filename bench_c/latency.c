/* Latency as listing 6 of the paper measures it: t0, post, wait for the callback's flag, t2; one
 * request at a time. */
#include "world.h"

#define SAMPLES 20000

static const char *about =
    "Latency t2 - t0 of one request at a time: the callback sets a flag, the caller spins on it politely.";
static double samples[SAMPLES];
static uint64_t flag __attribute__((aligned(2 * BENCH_LINE)));

static void set_flag(void *data, llcl_status_t status)
{
    __atomic_store_n((uint64_t *)data, status == LLCL_OK ? 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

/* How many operations of this size fill about `ms` milliseconds. */
static size_t count_for(size_t size, double ms)
{
    double guess = 400 + (double)size / 4; /* ns */
    double count = ms * 1e6 / guess;
    return count < 12 ? 12 : count > SAMPLES ? SAMPLES : (size_t)count;
}

static double once(const bench_world_t *world, const bench_request_t *request)
{
    __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
    uint64_t t0 = bench_ticks();
    bench_post(world->context, request->op, request);
    bench_wait(&flag, 1);
    return (double)(bench_ticks() - t0);
}

static void library(const bench_world_t *world, const bench_request_t *request, size_t count, double *median, double *p99)
{
    for (size_t i = 0; i < count / 8 + 4; i++) /* wakes the progress thread and warms the caches */
        once(world, request);
    for (size_t i = 0; i < count; i++)
        samples[i] = once(world, request);
    *median = bench_percentile(samples, count, 50) / bench_ticks_per_ns();
    *p99 = bench_percentile(samples, count, 99) / bench_ticks_per_ns();
}

/* The median time of the plain function or of the system call, each call timed by itself. */
static double bare(const bench_world_t *world, bench_op_t op, bench_memory_t memory, size_t size, size_t count)
{
    plain_params_t plain = world_plain(world, 0, size);
    for (size_t i = 0; i < count; i++) {
        uint64_t t0 = bench_ticks();
        if (memory == BENCH_MAPPED)
            bench_plain(op, &plain);
        else if (limits_vm_copy(world->peer_process, world->source_memory, world->peer_registered, size,
                                op == BENCH_WRITE) != (ssize_t)size)
            return NAN;
        samples[i] = (double)(bench_ticks() - t0);
    }
    return bench_percentile(samples, count, 50) / bench_ticks_per_ns();
}

static const char *limit_name(int offload, bench_memory_t memory, size_t size)
{
    if (memory == BENCH_MAPPED)
        return !offload ? "plain function timed alike" : size == 8 ? "two hand-overs" : "two hand-overs + plain function";
    return offload ? "process_vm + two hand-overs" : "process_vm";
}

static void measure(bench_world_t *world, const bench_options_t *options, bench_op_t op, bench_memory_t memory, size_t size)
{
    int offload = world->execution == LLCL_EXECUTION_OFFLOAD;
    int by_message = op == BENCH_FETCH_ADD && memory == BENCH_REGISTERED; /* the owner executes it */
    size_t count = by_message || world->behind_wire ? 200 : count_for(size, options->quick ? 2 : 5);
    char what[64];
    snprintf(what, sizeof what, "%s %s", bench_op_name(op), memory == BENCH_MAPPED ? "mapped" : "registered");
    bench_record_t record = {.what = what, .unit = "ns", .ranks = (int)world->size, .threads = 1, .size = size, .count = count};
    record.limit_name = by_message ? NULL : limit_name(offload, memory, size);
    if (offload && memory == BENCH_MAPPED && size == 8)
        record.target = "ratio<=2.5";
    bench_request_t request = world_request(world, op, memory, 0, size, llcl_callback(set_flag, &flag), 0);
    for (int i = 0; i < options->repeats; i++) {
        double limit = by_message ? NAN : 0, median, p99;
        if (offload && !by_message)
            limit = world_two_hand_overs(world);
        if (!by_message && !(offload && memory == BENCH_MAPPED && size == 8))
            limit += bare(world, op, memory, size, count);
        library(world, &request, count, &median, &p99);
        bench_add(&record.series, limit, median, p99);
    }
    world_verify(world, op, memory, size, 0);
    bench_emit(&record);
}

int main(int argc, char **argv)
{
    static const size_t full[] = {8, 64, 512, 4096, 32768, 262144, 1048576, 4194304}, few[] = {8, 4096, 1048576};
    bench_options_t options = bench_parse(argc, argv, about);
    const size_t *sizes = options.quick ? few : full;
    size_t how_many = options.quick ? sizeof few / sizeof *few : sizeof full / sizeof *full;
    bench_world_t world;
    world_open(&world, &options, 4194304);
    if (options.show) {
        bench_begin(&options, about);
        for (int memory = BENCH_MAPPED; memory <= BENCH_REGISTERED; memory++) {
            for (int op = BENCH_WRITE; op <= BENCH_READ; op++)
                for (size_t i = 0; i < how_many; i++)
                    measure(&world, &options, (bench_op_t)op, (bench_memory_t)memory, sizes[i]);
            measure(&world, &options, BENCH_FETCH_ADD, (bench_memory_t)memory, 8);
        }
        char step[160];
        snprintf(step, sizeof step, "the clock takes %.0f ns and moves in steps of that order; for short times see msgrate (ns per op)",
                 limits_ticks(100000));
        bench_note(step);
        bench_end();
    }
    world_close(&world);
    return 0;
}
