/* Bandwidth of reads and writes of 8 B to 64 MiB, in mapped and in registered memory of another
 * process. The limits are memcpy between the same two buffers (private memory here, a shared
 * mapping there), and process_vm_readv and process_vm_writev of the same size. */
#include "world.h"

#include <string.h>

static const char *about = "Bandwidth of reads and writes; the limit copies between the very same buffers without the library.";
static uint64_t completed __attribute__((aligned(2 * BENCH_LINE)));

#define PAIRS 6 /* batches of library and limit, in turn, in one repeat */

/* Operations that move about `mib` MiB, at most 1000. */
static size_t count_for(size_t size, double mib)
{
    double count = mib * 1048576 / (double)size;
    return count < 1 ? 1 : count > 1000 ? 1000 : (size_t)count;
}

static double library(const bench_world_t *world, const bench_request_t *request, size_t size, size_t count)
{
    __atomic_store_n(&completed, 0, __ATOMIC_RELAXED);
    uint64_t before = bench_now_ns();
    for (size_t i = 0; i < count; i++)
        bench_post(world->context, request->op, request);
    bench_wait(&completed, count);
    return world_gigabytes(size, count, bench_now_ns() - before);
}

static void measure(const bench_world_t *world, const bench_options_t *options, bench_op_t op, bench_memory_t memory, size_t size)
{
    size_t count = count_for(size, 4);
    char what[64];
    snprintf(what, sizeof what, "%s %s", bench_op_name(op), memory == BENCH_MAPPED ? "mapped" : "registered");
    bench_record_t record = {.what = what, .unit = "GB/s", .ranks = (int)world->size, .threads = 1, .size = size, .count = count,
                             .limit_name = memory == BENCH_MAPPED ? "memcpy" : op == BENCH_READ ? "process_vm_readv" : "process_vm_writev"};
    if (size == 1048576)
        record.target = memory == BENCH_MAPPED ? "ratio>=0.95" : "ratio>=0.9";
    bench_request_t request = world_request(world, op, memory, 0, size, llcl_add_on(&completed), 0);
    world_copies(world, op == BENCH_WRITE, memory, size, 1);
    library(world, &request, size, 1);
    for (int r = 0; r < options->repeats; r++) {
        double limits[PAIRS], ours[PAIRS];
        for (int i = 0; i < PAIRS; i++) { /* the first one alternates, so that the caches favour neither */
            if (i % 2 == 0)
                limits[i] = world_copies(world, op == BENCH_WRITE, memory, size, count);
            ours[i] = library(world, &request, size, count);
            if (i % 2 == 1)
                limits[i] = world_copies(world, op == BENCH_WRITE, memory, size, count);
        }
        bench_add(&record.series, bench_percentile(limits, PAIRS, 50), bench_percentile(ours, PAIRS, 50), NAN);
    }
    world_verify(world, op, memory, size, 0);
    bench_emit(&record);
}

int main(int argc, char **argv)
{
    static const size_t full[] = {8, 64, 512, 4096, 32768, 262144, 1048576, 4194304, 16777216, 67108864};
    static const size_t few[] = {8, 4096, 65536, 1048576, 16777216};
    bench_options_t options = bench_parse(argc, argv, about);
    const size_t *sizes = options.quick ? few : full;
    size_t how_many = options.quick ? sizeof few / sizeof *few : sizeof full / sizeof *full;
    bench_world_t world;
    world_open(&world, &options, sizes[how_many - 1]);
    if (options.show) {
        bench_begin(&options, about);
        for (int memory = BENCH_MAPPED; memory <= BENCH_REGISTERED; memory++)
            for (int op = BENCH_WRITE; op <= BENCH_READ; op++)
                for (size_t i = 0; i < how_many; i++)
                    measure(&world, &options, (bench_op_t)op, (bench_memory_t)memory, sizes[i]);
        bench_note("one buffer on each side, used repeatedly: small sizes stay in the caches, for the library and for the limit");
        bench_end();
    }
    world_close(&world);
    return 0;
}
