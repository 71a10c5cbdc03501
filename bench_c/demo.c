/* `make demo`: two processes on one machine read, write and update each other's memory, for about
 * two seconds. */
#include "world.h"

#include <unistd.h>

#define ROUNDS 20000

static uint64_t flag __attribute__((aligned(2 * BENCH_LINE)));
static double t1_t0[ROUNDS], t2_t0[ROUNDS];

/* The completion: the library calls it exactly once for each accepted request. */
static void arrived(void *data, llcl_status_t status)
{
    __atomic_store_n((uint64_t *)data, status == LLCL_OK ? 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

/* t0: before the post. t1: accepted. t2: the callback has run. */
static void one_by_one(const bench_world_t *world, bench_op_t op)
{
    bench_request_t request = world_request(world, op, BENCH_MAPPED, 0, 8, llcl_callback(arrived, &flag), 0);
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
        uint64_t t0 = bench_ticks();
        bench_post(world->context, op, &request);
        uint64_t t1 = bench_ticks();
        bench_wait(&flag, 1);
        t1_t0[i] = (double)(t1 - t0);
        t2_t0[i] = (double)(bench_ticks() - t0);
    }
}

static double millions_a_second(const bench_world_t *world, bench_op_t op)
{
    bench_request_t request = world_request(world, op, BENCH_MAPPED, 0, 8, llcl_no_completion(), 0);
    uint64_t posted = 0, before = bench_now_ns(), now;
    do {
        for (int i = 0; i < 1000; i++)
            bench_post(world->context, op, &request);
        posted += 1000;
        now = bench_now_ns();
    } while (now - before < 400000000);
    bench_check(llcl_flush(world->context, world->peer), "llcl_flush");
    return (double)posted * 1e3 / (double)(bench_now_ns() - before);
}

static void greet(const bench_world_t *world)
{
    llcl_peer_info_t info = {.struct_size = sizeof info};
    bench_check(llcl_query_peer(world->context, world->peer, &info), "llcl_query_peer");
    printf("hello from rank %u of %u (process %d): rank %u is process %u, reached over %s\n", world->rank, world->size,
           (int)getpid(), world->peer, info.process,
           info.transport == LLCL_TRANSPORT_SHM ? "shared memory" : "loopback");
    fflush(stdout);
}

static void table(const bench_world_t *world)
{
    double scale = bench_ticks_per_ns();
    printf("\n%-10s %12s %12s %12s %14s\n", "8 bytes", "latency ns", "p99 ns", "post ns", "million/s");
    for (int i = BENCH_WRITE; i <= BENCH_FETCH_ADD; i++) {
        bench_op_t op = (bench_op_t)i;
        one_by_one(world, op);
        world_verify(world, op, BENCH_MAPPED, 8, 0);
        double latency = bench_percentile(t2_t0, ROUNDS, 50) / scale, p99 = bench_percentile(t2_t0, ROUNDS, 99) / scale;
        double post = bench_percentile(t1_t0, ROUNDS, 50) / scale;
        printf("%-10s %12.1f %12.1f %12.1f %14.1f\n", bench_op_name(op), latency, p99, post, millions_a_second(world, op));
    }
    printf("\nlatency: post until the callback ran; post: what the caller pays; both include reading the clock\n"
           "(%.0f ns); million/s: one thread, mapped memory, no completion asked for.\n",
           limits_ticks(100000));
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, "Two processes, one table: latency, post overhead and message rate.");
    bench_world_t world;
    world_open(&world, &options, 4096);
    greet(&world);
    if (options.show) {
        bench_sleep_us(20000); /* the other rank prints its line first */
        table(&world);
    }
    world_close(&world);
    return 0;
}
