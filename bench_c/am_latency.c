/* Latency of active messages between two processes that both wait in llcl_wait_word: message and
 * message back, and request with reply. */
#include "am.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 2000 /* single round trips, for the 99th percentile */
#define BATCHES 60   /* batches of BATCH round trips, for the median: reading the clock costs a tenth of one */
#define BATCH 50
#define LARGEST 4096

enum { ID_PING = 1, ID_REQUEST };
typedef enum form { FORM_PING, FORM_REQUEST } form_t;

static const char *about = "Latency of active messages, one at a time, both ranks waiting in llcl_wait_word.";
static double singles[SAMPLES], batches[BATCHES];
static uint64_t arrived __attribute__((aligned(2 * BENCH_LINE)));  /* messages handled here */
static uint64_t answered __attribute__((aligned(2 * BENCH_LINE))); /* the completion of a request */
static char bytes[LARGEST] __attribute__((aligned(BENCH_LINE)));
static char answer[LARGEST] __attribute__((aligned(BENCH_LINE)));

static void on_ping(llcl_am_t *message, void *data)
{
    (void)message;
    am_count(data);
}

/* Replies with as many bytes as the request has. */
static void on_request(llcl_am_t *message, void *data)
{
    llcl_am_view_t view = am_view(message);
    bench_check(llcl_am_reply(message, bytes, view.header_size + view.payload_size), "llcl_am_reply");
    am_count(data);
}

/* The other rank: waits for each message. In a ping-pong it sends one back; a request is answered
 * by its handler. */
static void serve(const bench_world_t *world, form_t form, size_t size, unsigned rounds)
{
    llcl_am_params_t back = am_message(world->peer, ID_PING, bytes, size);
    for (unsigned i = 1; i <= rounds; i++) {
        am_wait(world, &arrived, i);
        if (form == FORM_PING)
            am_post(world->context, &back);
    }
}

/* Makes `rounds` round trips. `first`: the number of the first one. */
static inline __attribute__((always_inline)) void round_trips(const bench_world_t *world, const llcl_am_params_t *params,
                                                              form_t form, uint64_t first, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        __atomic_store_n(&answered, 0, __ATOMIC_RELAXED);
        am_post(world->context, params);
        am_wait(world, form == FORM_PING ? &arrived : &answered, form == FORM_PING ? first + i : 1);
    }
}

typedef struct counts {
    int warm, batches, singles;
} counts_t;

/* Fewer samples if each message wakes threads. */
static counts_t counts_of(const bench_world_t *world)
{
    return world->execution == LLCL_EXECUTION_OFFLOAD ? (counts_t){1, BATCHES / 20, SAMPLES / 20}
                                                      : (counts_t){BATCHES / 4, BATCHES, SAMPLES};
}

static void ask(const bench_world_t *world, form_t form, size_t size, counts_t counts)
{
    llcl_am_params_t params = am_message(world->peer, form == FORM_PING ? ID_PING : ID_REQUEST, bytes, size);
    if (form == FORM_REQUEST) {
        params.reply = answer;
        params.reply_capacity = size;
        params.on_complete = llcl_store_on(&answered);
    }
    uint64_t number = 1;
    for (int i = -counts.warm; i < counts.batches; i++, number += BATCH) { /* below 0: batches that warm the caches */
        uint64_t t0 = bench_ticks();
        round_trips(world, &params, form, number, BATCH);
        if (i >= 0)
            batches[i] = (double)(bench_ticks() - t0) / BATCH;
    }
    for (int i = 0; i < counts.singles; i++, number++) {
        uint64_t t0 = bench_ticks();
        round_trips(world, &params, form, number, 1);
        singles[i] = (double)(bench_ticks() - t0);
    }
}

/* One more request: its reply must have the bytes of the other rank, which are not 0. */
static void verify(const bench_world_t *world, size_t size)
{
    memset(answer, 0, sizeof answer);
    ask(world, FORM_REQUEST, size, (counts_t){0, 0, 1});
    if (memcmp(answer, bytes, size) != 0)
        bench_die("am_latency: a reply of %zu bytes has WRONG DATA", size);
}

/* Collective. */
static void measure(bench_world_t *world, const bench_options_t *options, form_t form, size_t size)
{
    double ways = form == FORM_PING ? 2 : 1; /* the figure is half a round trip of a ping-pong, a whole one of a request */
    bench_series_t series = {0}, against_ring = {0};
    counts_t counts = counts_of(world);
    for (int r = 0; r < options->repeats; r++) {
        double limit = 0, ring = 0;
        if (world->rank == 0) {
            ring = 2 * world_ring_way(world);
            limit = world_two_hand_overs(world);
            if (size > AM_HEADER_UP_TO)
                limit += 2 * am_copy(world, size, 1, 2000);
        }
        arrived = 0;
        am_fence(world);
        if (world->rank == 0)
            ask(world, form, size, counts);
        else
            serve(world, form, size, (unsigned)((counts.warm + counts.batches) * BATCH + counts.singles));
        am_fence(world);
        double median = bench_percentile(batches, (size_t)counts.batches, 50) / bench_ticks_per_ns();
        double p99 = bench_percentile(singles, (size_t)counts.singles, 99) / bench_ticks_per_ns();
        bench_add(&series, limit / ways, median / ways, p99 / ways);
        bench_add(&against_ring, ring / ways, median / ways, p99 / ways);
    }
    if (form == FORM_REQUEST && world->rank == 0)
        verify(world, size);
    am_fence(world);
    static const char *const limits[2][2] = {{"hand-over", "hand-over + memcpy"}, {"two hand-overs", "two hand-overs + memcpy"}};
    const char *what = form == FORM_PING ? "ping-pong; half round trip" : "request and reply; round trip";
    am_emit(world, what, "ns", 1, size, limits[form][size > AM_HEADER_UP_TO],
            size == 8 && world->execution != LLCL_EXECUTION_OFFLOAD ? "ratio<=1.5" : NULL, &series);
    if (size == 8) {
        char name[64];
        snprintf(name, sizeof name, "%s; against a ring", what);
        am_emit(world, name, "ns", 1, size, form == FORM_PING ? "bare ring" : "bare ring there and back", NULL, &against_ring);
    }
}

int main(int argc, char **argv)
{
    static const size_t full[] = {8, 64, 512, 1024, 4096}, few[] = {8, 4096};
    bench_options_t options = bench_parse(argc, argv, about);
    const size_t *sizes = options.quick ? few : full;
    int how_many = options.quick ? 2 : 5;
    bench_world_t world;
    am_open(&world, &options, AM_COPIES_FROM + LARGEST);
    if (world.size != 2)
        bench_die("am_latency: %u ranks, expected 2", world.size);
    am_register(&world, ID_PING, on_ping, &arrived);
    am_register(&world, ID_REQUEST, on_request, &arrived);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 251 + 1);
    am_fence(&world);
    bench_begin(&options, about);
    llcl_stats_t *before = am_stats(&world);
    for (int form = FORM_PING; form <= FORM_REQUEST; form++)
        for (int i = 0; i < how_many; i++)
            measure(&world, &options, (form_t)form, sizes[i]);
    llcl_stats_t *after = am_stats(&world);
    bench_note("median and quartiles: batches of 50 round trips; p99: single round trips, with the time of reading the clock");
    bench_note("up to 64 bytes travel as the header, more as the payload; a reply has as many bytes as its request");
    am_note_stats(&world, "both ranks", before, after);
    bench_end();
    free(before);
    free(after);
    world_close(&world);
    return 0;
}
