/* Polled handlers between two processes: an empty poll; a ping-pong in which both ranks poll;
 * floods with more polling threads than cores, in which a thread that is preempted inside a poll
 * must not stop the others. */
#include "am.h"

#include <pthread.h>
#include <stdlib.h>

#define POLLS 2000000
#define BATCHES 60
#define BATCH 200
#define EACH 20000 /* messages that a thread sends in a flood */
#define THREADS 8

enum { ID_PING = 1, ID_FLOOD };

static const char *about = "Polled handlers: LLCL_AM_HANDLERS=polled, handlers run in llcl_am_poll only.";
static uint64_t arrived __attribute__((aligned(2 * BENCH_LINE)));
static uint64_t flooded __attribute__((aligned(2 * BENCH_LINE)));
static char bytes[8] __attribute__((aligned(BENCH_LINE)));
static double batches[BATCHES];

static void on_message(llcl_am_t *message, void *data)
{
    (void)message;
    am_count(data);
}

static inline void poll_until(const bench_world_t *world, const uint64_t *word, uint64_t count)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < count)
        llcl_am_poll(world->context, 64, NULL);
}

static void measure_empty(bench_world_t *world, const bench_options_t *options)
{
    bench_series_t series = {0};
    for (int r = 0; r < options->repeats; r++) {
        am_fence(world);
        if (world->rank == 0) {
            uint64_t t0 = bench_ticks();
            for (int i = 0; i < POLLS; i++)
                llcl_am_poll(world->context, 64, NULL);
            double took = (double)(bench_ticks() - t0) / POLLS / bench_ticks_per_ns();
            bench_add(&series, 10, took, NAN);
        }
        am_fence(world);
    }
    am_emit(world, "empty poll", "ns", 1, 0, "10 ns", "ratio<=1", &series);
}

static void measure_ping(bench_world_t *world, const bench_options_t *options)
{
    bench_series_t series = {0};
    llcl_am_params_t ping = am_message(world->peer, ID_PING, bytes, sizeof bytes);
    for (int r = 0; r < options->repeats; r++) {
        double limit = world->rank == 0 ? world_two_hand_overs(world) / 2 : 0;
        uint64_t number = 1;
        arrived = 0;
        am_fence(world);
        for (int i = -BATCHES / 4; i < BATCHES; i++) {
            uint64_t t0 = bench_ticks();
            for (int k = 0; k < BATCH; k++, number++) {
                if (world->rank == 0)
                    am_post(world->context, &ping);
                poll_until(world, &arrived, number);
                if (world->rank == 1)
                    am_post(world->context, &ping);
            }
            if (i >= 0)
                batches[i] = (double)(bench_ticks() - t0) / BATCH / 2 / bench_ticks_per_ns();
        }
        am_fence(world);
        bench_add(&series, limit, bench_percentile(batches, BATCHES, 50), NAN);
    }
    am_emit(world, "ping-pong by polls; half round trip", "ns", 1, sizeof bytes, "hand-over", "ratio<=1.5", &series);
}

typedef struct flood {
    bench_world_t *world;
    uint64_t all;
} flood_t;

static void *flood(void *data)
{
    flood_t *mine = data;
    llcl_am_params_t message = am_message(mine->world->peer, ID_FLOOD, bytes, sizeof bytes);
    for (int i = 0; i < EACH;) {
        llcl_status_t status = llcl_try_am_async(mine->world->context, &message);
        i += status == LLCL_OK;
        if (status < 0)
            bench_check(status, "llcl_try_am_async");
        llcl_am_poll(mine->world->context, 64, NULL);
    }
    poll_until(mine->world, &flooded, mine->all);
    return NULL;
}

static void measure_flood(bench_world_t *world, const bench_options_t *options, int threads)
{
    bench_series_t series = {0};
    for (int r = 0; r < options->repeats; r++) {
        pthread_t started[THREADS];
        flood_t mine = {world, (uint64_t)threads * EACH};
        flooded = 0;
        am_fence(world);
        uint64_t t0 = bench_now_ns();
        for (int i = 0; i < threads; i++)
            if (pthread_create(&started[i], NULL, flood, &mine))
                bench_die("no thread");
        for (int i = 0; i < threads; i++)
            pthread_join(started[i], NULL);
        am_fence(world);
        double took = (double)(bench_now_ns() - t0) / (2.0 * (double)mine.all);
        bench_add(&series, 300, took, NAN);
    }
    am_emit(world, "flood both ways, each thread sends and polls; time per message", "ns", threads, sizeof bytes, "300 ns",
            "ratio<=2", &series);
}

int main(int argc, char **argv)
{
    static const int threads[] = {1, 2, THREADS};
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    setenv("LLCL_AM_HANDLERS", "polled", 1);
    world_open(&world, &options, AM_COPIES_FROM);
    if (world.size != 2)
        bench_die("am_poll: %u ranks, expected 2", world.size);
    am_register(&world, ID_PING, on_message, &arrived);
    am_register(&world, ID_FLOOD, on_message, &flooded);
    am_fence(&world);
    bench_begin(&options, about);
    measure_empty(&world, &options);
    measure_ping(&world, &options);
    for (int i = 0; i < 3; i++)
        measure_flood(&world, &options, threads[i]);
    bench_end();
    world_close(&world);
    return 0;
}
