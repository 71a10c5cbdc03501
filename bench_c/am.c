#include "am.h"

#include <stdlib.h>
#include <string.h>

void am_open(bench_world_t *world, bench_options_t *options, size_t bytes)
{
    setenv("LLCL_AM_HANDLERS", "serial", 1);
    world_open(world, options, bytes);
}

void am_register(const bench_world_t *world, uint32_t id, llcl_am_handler_fn handler, void *data)
{
    bench_check(llcl_am_register(world->context, id, handler, data), "llcl_am_register");
}

void am_fence(const bench_world_t *world) { bench_check(llcl_allgather_bytes(world->context, NULL, 0, NULL), "llcl_allgather_bytes"); }

llcl_am_params_t am_message(uint32_t peer, uint32_t id, const void *bytes, size_t size)
{
    llcl_am_params_t params;
    memset(&params, 0, sizeof params);
    params.peer = peer;
    params.id = id;
    if (size <= AM_HEADER_UP_TO) {
        params.header = bytes;
        params.header_size = size;
    } else {
        params.payload = bytes;
        params.payload_size = size;
    }
    return params;
}

double am_copy(const bench_world_t *world, size_t size, size_t places, unsigned rounds)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy; /* a call each time, as the size is not constant */
    uint64_t before = bench_now_ns();
    size_t place = 0;
    for (unsigned i = 0; i < rounds; i++) {
        copy(world->mapped_pointer + AM_COPIES_FROM + place * size, world->source_memory, size);
        place = place + 1 == places ? 0 : place + 1;
    }
    return (double)(bench_now_ns() - before) / rounds;
}

void am_wait(const bench_world_t *world, const uint64_t *word, uint64_t count)
{
    bench_check(llcl_wait_word(world->context, word, count, -1), "llcl_wait_word");
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & LLCL_WORD_FAILED)
        bench_die("a message has failed (completion word %#llx)", (unsigned long long)*word);
}

/* ---- figures ---- */

llcl_stats_t *am_stats(const bench_world_t *world)
{
    llcl_stats_t mine, *all = calloc(world->size, sizeof *all);
    if (all == NULL)
        bench_die("no memory for the figures of %u ranks", world->size);
    mine.struct_size = sizeof mine;
    bench_check(llcl_stats_get(world->context, &mine), "llcl_stats_get");
    bench_check(llcl_allgather_bytes(world->context, &mine, sizeof mine, all), "llcl_allgather_bytes");
    return all;
}

static unsigned long long updates(const llcl_stats_t *stats)
{
    unsigned long long sum = 0;
    for (int share = 0; share < 16; share++)
        sum += stats->credit_updates[share];
    return sum;
}

/* The growth of a counter, summed over all ranks. */
#define GREW(field) grew(world->size, &before->field, &after->field)

static unsigned long long grew(uint32_t ranks, const uint64_t *before, const uint64_t *after)
{
    unsigned long long sum = 0;
    const size_t step = sizeof(llcl_stats_t) / sizeof(uint64_t);
    for (uint32_t rank = 0; rank < ranks; rank++)
        sum += after[rank * step] - before[rank * step];
    return sum;
}

void am_note_stats(const bench_world_t *world, const char *what, const llcl_stats_t *before, const llcl_stats_t *after)
{
    if (world->rank != 0)
        return;
    unsigned long long taken = 0, slots = 0, requests = 0;
    for (uint32_t rank = 0; rank < world->size; rank++) {
        taken += updates(&after[rank]) - updates(&before[rank]);
        slots = after[rank].slots_high_water > slots ? after[rank].slots_high_water : slots;
        requests = after[rank].requests_high_water > requests ? after[rank].requests_high_water : requests;
    }
    char line[320];
    snprintf(line, sizeof line, "%s: %llu sent, %llu handled, %llu replies; %llu changes of counters, %llu reads of RecvCNT, %llu skips;",
             what, GREW(am_sent), GREW(am_handled), GREW(am_replies), taken, GREW(credit_reads), GREW(skips));
    bench_note(line);
    snprintf(line, sizeof line,
             "    refused for credit %llu, queue %llu, tag %llu, busy %llu; %llu sleeps for credit, %llu wake-ups; most at one time: "
             "%llu messages in slots, %llu requests",
             GREW(retry_no_credit), GREW(retry_queue_full), GREW(retry_no_tag), GREW(retry_busy), GREW(credit_sleeps),
             GREW(wake_ups), slots, requests);
    bench_note(line);
}

void am_emit(const bench_world_t *world, const char *what, const char *unit, int threads, size_t size, const char *limit_name,
             const char *target, const bench_series_t *series)
{
    bench_record_t record = {.what = what, .unit = unit, .limit_name = limit_name, .target = target, .size = size,
                             .ranks = (int)world->size, .threads = threads, .count = 0, .series = *series};
    bench_emit(&record);
}
