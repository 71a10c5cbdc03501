/* Large payloads of active messages. The receiver pulls those of BULK messages (retain, read,
 * release). The sender writes those of LONG messages before the handler runs. Both are compared
 * with the same copies without the library. */
#include "am.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST ((size_t)16 << 20)
#define PAIRS 2      /* batches of library and limit, in turn, in one repeat */
#define CHECKED ((size_t)65536) /* bytes of the last messages, whose contents the receiver checks */
#define PENDING 4096 /* most messages whose read could not be posted at once; LLCL_AM_REQUESTS is not larger */

enum { ID_BULK = 1, ID_LONG, ID_OVER };

static const char *about = "Large payloads of active messages; each has been handled, or pulled and released, when it counts.";
static uint64_t completed __attribute__((aligned(2 * BENCH_LINE)));
static uint64_t put_off __attribute__((aligned(2 * BENCH_LINE))); /* messages in `pending` so far */
static uint64_t over; /* set by the handler of ID_OVER */
static llcl_am_t *pending[PENDING];

/* ---- the receiver ---- */

static void release(void *data, llcl_status_t status)
{
    bench_check(status, "read of a BULK payload");
    bench_check(llcl_am_release(data), "llcl_am_release");
}

static llcl_read_params_t pull_of(const bench_world_t *world, llcl_am_t *kept)
{
    llcl_read_params_t params;
    memset(&params, 0, sizeof params);
    llcl_am_view_t view = am_view(kept);
    params.peer = view.source;
    params.source = view.address;
    params.size = view.payload_size;
    params.destination = llcl_region_local(world->source, 0);
    params.on_complete = llcl_callback(release, kept);
    return params;
}

static void on_bulk(llcl_am_t *message, void *data)
{
    llcl_am_t *kept = llcl_am_retain(message);
    if (kept == NULL)
        bench_die("llcl_am_retain: %s", llcl_last_error());
    llcl_read_params_t pull = pull_of(data, kept);
    llcl_status_t status = llcl_try_read_async(((const bench_world_t *)data)->context, &pull);
    if (status > 0) { /* a handler must not wait */
        pending[put_off % PENDING] = kept;
        am_count(&put_off);
    } else {
        bench_check(status, "llcl_try_read_async");
    }
}

static void on_long(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
}

/* Wakes the receiver's main thread. Sets `over` first, by which that thread sees the reason. */
static void on_over(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    am_count(&put_off);
}

static void serve(const bench_world_t *world)
{
    for (uint64_t taken = 0;; taken++) {
        bench_check(llcl_wait_word(world->context, &put_off, taken + 1, -1), "llcl_wait_word");
        if (__atomic_load_n(&over, __ATOMIC_RELAXED))
            return; /* rank 0 sends ID_OVER when everything was handled */
        llcl_read_params_t pull = pull_of(world, pending[taken % PENDING]);
        bench_check(llcl_read_async(world->context, &pull), "llcl_read_async");
    }
}

/* ---- the sender ---- */

/* As many messages of this size as move 64 MiB, which takes much longer than waking the
 * receiver. */
static unsigned count_for(size_t size) { return (unsigned)(4 * LARGEST / size); }

static llcl_am_params_t message_of(const bench_world_t *world, uint32_t id, bench_memory_t memory, size_t size)
{
    llcl_am_params_t params = am_message(world->peer, id, NULL, 0);
    params.payload_size = size;
    params.on_complete = llcl_add_on(&completed);
    if (id == ID_BULK) {
        params.kind = LLCL_AM_BULK;
        params.source = llcl_region_local(memory == BENCH_MAPPED ? world->mapped : world->registered, 0);
    } else {
        params.kind = LLCL_AM_LONG;
        params.source = llcl_region_local(world->source, 0);
        params.destination = world->remote[memory];
    }
    return params;
}

static double library(const bench_world_t *world, const llcl_am_params_t *params, size_t size, unsigned count)
{
    __atomic_store_n(&completed, 0, __ATOMIC_RELAXED);
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < count; i++)
        am_post(world->context, params);
    am_wait(world, &completed, count);
    return world_gigabytes(size, count, bench_now_ns() - before);
}

static void measure(const bench_world_t *world, const bench_options_t *options, uint32_t id, bench_memory_t memory, size_t size)
{
    unsigned count = count_for(size);
    bench_series_t series = {0};
    llcl_am_params_t params = message_of(world, id, memory, size);
    world_copies(world, id == ID_LONG, memory, size, 1);
    library(world, &params, size, 1);
    for (int r = 0; r < options->repeats; r++) {
        double limits[PAIRS], ours[PAIRS];
        for (int i = 0; i < PAIRS; i++) { /* the first one alternates, so that the caches favour neither */
            if (i % 2 == 0)
                limits[i] = world_copies(world, id == ID_LONG, memory, size, count);
            ours[i] = library(world, &params, size, count);
            if (i % 2 == 1)
                limits[i] = world_copies(world, id == ID_LONG, memory, size, count);
        }
        bench_add(&series, bench_percentile(limits, PAIRS, 50), bench_percentile(ours, PAIRS, 50), NAN);
    }
    char what[64];
    snprintf(what, sizeof what, "%s %s", id == ID_BULK ? "bulk; pulled from" : "long; written to",
             memory == BENCH_MAPPED ? "mapped" : "registered");
    am_emit(world, what, "GB/s", 1, size,
            memory == BENCH_MAPPED ? "memcpy" : id == ID_BULK ? "process_vm_readv" : "process_vm_writev", NULL, &series);
}

/* ---- contents ---- */

enum { OF_MAPPED = 2, OF_REGISTERED, OF_SOURCE };

static void fill(char *bytes, int with)
{
    for (size_t i = 0; i < CHECKED; i++)
        bytes[i] = (char)(i % 241 + (size_t)with);
}

/* The sender: one more message of each kind, with new contents. */
static void send_new(const bench_world_t *world)
{
    fill(llcl_region_address(world->mapped), OF_MAPPED);
    fill(world->registered_memory, OF_REGISTERED);
    fill(world->source_memory, OF_SOURCE);
    for (uint32_t id = ID_BULK; id <= ID_LONG; id++)
        for (int memory = BENCH_MAPPED; memory <= BENCH_REGISTERED; memory++) {
            llcl_am_params_t params = message_of(world, id, (bench_memory_t)memory, CHECKED);
            library(world, &params, CHECKED, 1);
        }
}

/* The receiver: LONG messages write to two of the buffers; it pulls BULK ones into the third. */
static void check_new(const bench_world_t *world)
{
    static char expected[CHECKED];
    fill(expected, OF_SOURCE);
    if (memcmp(llcl_region_address(world->mapped), expected, CHECKED) != 0 || memcmp(world->registered_memory, expected, CHECKED) != 0)
        bench_die("bulk: a LONG message has brought WRONG DATA");
    fill(expected, OF_REGISTERED); /* the last one that it has pulled */
    if (memcmp(world->source_memory, expected, CHECKED) != 0)
        bench_die("bulk: a BULK message has brought WRONG DATA");
}

int main(int argc, char **argv)
{
    static const size_t full[] = {65536, 262144, 1048576, 4194304, LARGEST}, few[] = {65536, 1048576};
    bench_options_t options = bench_parse(argc, argv, about);
    const size_t *sizes = options.quick ? few : full;
    int how_many = options.quick ? 2 : 5;
    bench_world_t world;
    am_open(&world, &options, LARGEST);
    if (world.size != 2)
        bench_die("bulk: %u ranks, expected 2", world.size);
    am_register(&world, ID_BULK, on_bulk, &world);
    am_register(&world, ID_LONG, on_long, NULL);
    am_register(&world, ID_OVER, on_over, NULL);
    am_fence(&world);
    bench_begin(&options, about);
    llcl_stats_t *before = am_stats(&world);
    if (world.rank == 0) {
        for (uint32_t id = ID_BULK; id <= ID_LONG; id++)
            for (int memory = BENCH_MAPPED; memory <= BENCH_REGISTERED; memory++)
                for (int i = 0; i < how_many; i++)
                    measure(&world, &options, id, (bench_memory_t)memory, sizes[i]);
        send_new(&world);
        llcl_am_params_t last = am_message(world.peer, ID_OVER, NULL, 0);
        am_post(world.context, &last);
    } else {
        serve(&world);
        check_new(&world);
    }
    llcl_stats_t *after = am_stats(&world);
    bench_note("one buffer on each side, used repeatedly; batches of 64 MiB, up to LLCL_AM_REQUESTS messages under way");
    am_note_stats(&world, "both ranks", before, after);
    bench_end();
    free(before);
    free(after);
    world_close(&world);
    return 0;
}
