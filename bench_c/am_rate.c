/* The number of active messages that arrive per second when threads of one rank flood another rank.
 * In a world of four or more ranks, every rank also sends to the next one with four threads; that
 * rate is compared with the rate of two ranks. */
#include "am_flow.h"

#include <stdlib.h>

#define MEDIUM 4096
#define RING_THREADS 4

static const char *about = "One-way rate of active messages; counted by the handler, in a window of time.";

static flow_t pair(int threads, size_t size, int try_form, unsigned ms)
{
    /* Long enough for every thread to get a core some ten times. */
    return (flow_t){.shape = FLOW_PAIR, .ranks = 2, .threads = threads, .size = size, .try_form = try_form,
                    .ms = threads >= 8 ? 3 * ms : ms};
}

/* Every repeat measures all thread counts one after the other, so that rates of about the same time
 * are compared. */
static void threads(flow_world_t *flows, bench_world_t *world, const bench_options_t *options, int try_form)
{
    static const int full[] = {1, 2, 4, 8, 15}, few[] = {1, 2, 15};
    const int *counts = options->quick || try_form ? few : full;
    int how_many = options->quick || try_form ? 3 : 5, offload = world->execution == LLCL_EXECUTION_OFFLOAD;
    bench_series_t rates[5] = {{0}}, bare[5] = {{0}}, in_turns[5] = {{0}}, fair[5] = {{0}};
    bench_series_t to_best = {0}, bare_to_best = {0}, turns_to_best = {0}, against_ring = {0}, against_turns = {0};
    int repeats = try_form && options->repeats > 3 ? 3 : options->repeats;
    for (int r = 0; r < repeats; r++)
        for (int i = 0; i < how_many; i++) {
            flow_t flow = pair(counts[i], 8, try_form, options->quick ? 60 : 100);
            double ring = i == 0 && !try_form && world->rank == 0 ? 1e3 / world_ring_message(world, 8) : NAN;
            double shared = !try_form && world->rank == 0 ? 1e3 / world_ring_shared(world, counts[i], 0) : NAN;
            double turns = !try_form && world->rank == 0 ? 1e3 / world_ring_shared(world, counts[i], 1) : NAN;
            flow_result_t result = flow_run(flows, &flow);
            bench_add(&bare[i], NAN, shared, NAN);
            bench_add(&in_turns[i], NAN, turns, NAN);
            if (i == 0)
                bench_add(&against_ring, ring, result.millions, NAN);
            bench_add(&rates[i], NAN, result.millions, NAN);
            bench_add(&fair[i], NAN, result.slowest_fastest, NAN);
        }
    int last = how_many - 1, best = bench_best(rates, how_many), bare_best = bench_best(bare, how_many);
    int turns_best = bench_best(in_turns, how_many);
    for (int r = 0; r < repeats; r++) {
        bench_add(&to_best, rates[best].ours[r], rates[last].ours[r], NAN);
        bench_add(&bare_to_best, bare[bare_best].ours[r], bare[last].ours[r], NAN);
        bench_add(&turns_to_best, in_turns[turns_best].ours[r], in_turns[last].ours[r], NAN);
        bench_add(&against_turns, in_turns[last].ours[r], rates[last].ours[r], NAN);
    }
    const char *what = try_form ? "one way; try and yield" : "one way";
    char name[96];
    for (int i = 0; i < how_many; i++)
        am_emit(world, what, "M/s", counts[i], 8, NULL, counts[i] == 1 && !offload && !try_form ? "value>=25" : NULL, &rates[i]);
    if (!try_form) {
        am_emit(world, "one way; against a ring", "M/s", 1, 8, "bare ring", NULL, &against_ring);
        for (int i = 0; i < how_many; i++)
            am_emit(world, "bare ring that threads share", "M/s", counts[i], 8, NULL, NULL, &bare[i]);
        am_emit(world, "bare ring that threads share; 15 threads / best", "M/s", 15, 8, "best thread count", NULL, &bare_to_best);
        for (int i = 0; i < how_many; i++)
            am_emit(world, "bare ring in turns", "M/s", counts[i], 8, NULL, NULL, &in_turns[i]);
        am_emit(world, "bare ring in turns; 15 threads / best", "M/s", 15, 8, "best thread count", NULL, &turns_to_best);
        am_emit(world, "one way; against a ring in turns", "M/s", 15, 8, "bare ring in turns", NULL, &against_turns);
    }
    snprintf(name, sizeof name, "%s; 15 threads / best", what);
    am_emit(world, name, "M/s", 15, 8, "best thread count", try_form ? NULL : "ratio>=0.9", &to_best);
    snprintf(name, sizeof name, "%s; slowest / fastest thread", what);
    for (int i = 1; i < how_many; i++)
        am_emit(world, name, "ratio", counts[i], 8, NULL, counts[i] == 15 && !try_form ? "value>=0.3" : NULL, &fair[i]);
}

/* Messages with payloads in slots. The limits are copies of the same size by this rank: to one
 * buffer, to as many buffers as there are slots, and into the payloads of a bare ring. */
static void medium(flow_world_t *flows, bench_world_t *world, const bench_options_t *options, size_t slots)
{
    bench_series_t one = {0}, many = {0}, against_ring = {0};
    for (int r = 0; r < options->repeats; r++) {
        double limits[3] = {NAN, NAN, NAN};
        flow_t flow = pair(1, MEDIUM, 0, options->quick ? 60 : 100);
        if (world->rank == 0) {
            limits[2] = MEDIUM / world_ring_message(world, MEDIUM);
            limits[0] = MEDIUM / am_copy(world, MEDIUM, 1, 20000);
            limits[1] = MEDIUM / am_copy(world, MEDIUM, slots, 20000);
        }
        double ours = flow_run(flows, &flow).millions * MEDIUM / 1e3;
        bench_add(&one, limits[0], ours, NAN);
        bench_add(&many, limits[1], ours, NAN);
        bench_add(&against_ring, limits[2], ours, NAN);
    }
    am_emit(world, "medium", "GB/s", 1, MEDIUM, "memcpy", world->execution == LLCL_EXECUTION_OFFLOAD ? NULL : "ratio>=0.8", &one);
    am_emit(world, "medium; against a walk", "GB/s", 1, MEDIUM, "memcpy to as many places as slots", NULL, &many);
    am_emit(world, "medium; against a ring", "GB/s", 1, MEDIUM, "bare ring", NULL, &against_ring);
}

/* More threads than cores. */
static void ring(flow_world_t *flows, const bench_world_t *world, const bench_options_t *options)
{
    /* In a shorter time the kernel gives some threads far more of the cores than others. */
    unsigned ms = options->quick ? 100 : 1000;
    flow_t two = {.shape = FLOW_RING, .ranks = 2, .threads = RING_THREADS, .size = 8, .ms = ms};
    flow_t all = {.shape = FLOW_RING, .ranks = world->size, .threads = RING_THREADS, .size = 8, .ms = ms};
    bench_series_t of_two = {0}, of_all = {0}, fair_two = {0}, fair_all = {0};
    for (int r = 0; r < options->repeats; r++) {
        flow_result_t little = flow_run(flows, &two), much = flow_run(flows, &all);
        bench_add(&of_two, NAN, little.millions, NAN);
        bench_add(&of_all, little.millions, much.millions, NAN);
        bench_add(&fair_two, NAN, little.slowest_fastest, NAN);
        bench_add(&fair_all, NAN, much.slowest_fastest, NAN);
    }
    char name[96];
    am_emit(world, "two ranks both send", "M/s", RING_THREADS, 8, NULL, NULL, &of_two);
    am_emit(world, "two ranks both send; slowest / fastest", "ratio", RING_THREADS, 8, NULL, NULL, &fair_two);
    snprintf(name, sizeof name, "%u ranks all send", world->size);
    am_emit(world, name, "M/s", RING_THREADS, 8, "two ranks", "ratio>=0.6", &of_all);
    snprintf(name, sizeof name, "%u ranks all send; slowest / fastest", world->size);
    am_emit(world, name, "ratio", RING_THREADS, 8, NULL, "value>=0.3", &fair_all);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    if (options.repeats > 5)
        options.repeats = 5;
    bench_world_t world;
    const char *size = getenv("LLCL_SIZE");
    int many = size != NULL && atoi(size) >= 4;
    flow_world_t *flows = flow_open(&world, &options, many ? MEDIUM : 512 * MEDIUM);
    if (!options.pin) /* else all senders share a core, and the receiver has one of its own */
        bench_unpin();
    llcl_capabilities_t can = {.struct_size = sizeof can};
    bench_check(llcl_query(world.context, &can), "llcl_query");
    flow_t first = pair(1, 8, 0, 5); /* takes the costs of the first use */
    flow_run(flows, &first);
    bench_begin(&options, about);
    llcl_stats_t *before = am_stats(&world), *after;
    if (many) {
        ring(flows, &world, &options);
    } else {
        threads(flows, &world, &options, 0);
        after = am_stats(&world);
        am_note_stats(&world, "both ranks so far", before, after);
        free(after);
        threads(flows, &world, &options, 1);
        medium(flows, &world, &options, can.am_slots < 512 ? can.am_slots : 512);
    }
    after = am_stats(&world);
    am_note_stats(&world, "all ranks together", before, after);
    bench_note(many ? "every rank sends to the next one with four threads and receives from the one before; none only receives"
                    : "rank 0 sends, rank 1 waits in llcl_wait_word; memcpy: from private memory to the peer's mapped memory");
    bench_end();
    free(before);
    free(after);
    flow_close(flows);
    return 0;
}
