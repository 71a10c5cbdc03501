#include "world.h"
#include "execution.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_check(llcl_status_t status, const char *call)
{
    if (status != LLCL_OK)
        bench_die("%s: %s: %s", call, llcl_status_string(status), llcl_last_error());
}

static const char *mode_of(uint32_t execution)
{
    return execution == LLCL_EXECUTION_AUTO ? "auto" : execution == LLCL_EXECUTION_OFFLOAD ? "offload" : "direct";
}

const char *bench_op_name(bench_op_t op)
{
    return op == BENCH_WRITE ? "write" : op == BENCH_READ ? "read" : "fetch-add";
}

static void *aligned_memory(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 4096, bytes) != 0)
        bench_die("no memory for %zu bytes", bytes);
    memset(memory, 1, bytes); /* allocates its pages */
    return memory;
}

/* What a rank publishes to the others. */
typedef struct card {
    llcl_remote_t mapped, registered;
    int64_t process;
    uint64_t registered_address;
} card_t;

static void share(bench_world_t *world)
{
    card_t mine = {llcl_region_remote(world->mapped, 0), llcl_region_remote(world->registered, 0), getpid(),
                   (uint64_t)(uintptr_t)world->registered_memory};
    card_t *all = calloc(world->size, sizeof *all);
    if (all == NULL)
        bench_die("no memory for %u cards", world->size);
    bench_check(llcl_allgather_bytes(world->context, &mine, sizeof mine, all), "llcl_allgather_bytes");
    const card_t *peer = &all[world->peer];
    world->remote[BENCH_MAPPED] = peer->mapped;
    world->remote[BENCH_REGISTERED] = peer->registered;
    world->peer_process = (pid_t)peer->process;
    world->peer_registered = (char *)(uintptr_t)peer->registered_address;
    free(all);
}

static int behind_wire(llcl_context_t *context, uint32_t peer)
{
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    bench_check(llcl_query_peer(context, peer, &info), "llcl_query_peer");
    return info.transport == LLCL_TRANSPORT_WIRE;
}

void world_open(bench_world_t *world, bench_options_t *options, size_t bytes)
{
    memset(world, 0, sizeof *world);
    world->bytes = bytes;
    world->pin = options->pin;
    const char *rank = getenv("LLCL_RANK");
    if (rank == NULL || strcmp(rank, "0") == 0)
        world->limits = limits_open(64); /* forks, so it comes before the library starts threads */
    /* A new thread inherits its creator's processors: the progress thread stays on the second core,
     * and this thread moves to the first one afterwards. */
    if (options->pin)
        bench_pin(1);
    llcl_config_t config;
    bench_check(llcl_config_default(&config), "llcl_config_default");
    config.execution = bench_execution(options->mode);
    bench_check(llcl_init(&config, &world->context), "llcl_init");
    llcl_capabilities_t capabilities = {.struct_size = sizeof capabilities};
    bench_check(llcl_query(world->context, &capabilities), "llcl_query");
    world->execution = (int)capabilities.execution;
    bench_set_mode(mode_of(capabilities.execution));

    world->rank = llcl_rank(world->context);
    world->size = llcl_size(world->context);
    world->peer = world->size > 1 ? (world->rank == 0 ? 1 : 0) : 0;
    world->registered_memory = aligned_memory(bytes);
    world->source_memory = aligned_memory(bytes);
    bench_check(llcl_region_allocate(world->context, bytes, 0, &world->mapped), "llcl_region_allocate");
    bench_check(llcl_region_register(world->context, world->registered_memory, bytes, 0, &world->registered),
                "llcl_region_register");
    bench_check(llcl_region_register(world->context, world->source_memory, bytes, 0, &world->source), "llcl_region_register");
    memset(llcl_region_address(world->mapped), 1, bytes);
    share(world);
    options->show = world->rank == 0;
    if (!options->show)
        return;

    /* Behind a wire the limit of a copy is a copy inside this process. */
    world->behind_wire = behind_wire(world->context, world->peer);
    world->mapped_pointer = world->behind_wire
                                ? llcl_region_address(world->mapped)
                                : llcl_remote_pointer(world->context, world->peer, world->remote[BENCH_MAPPED], bytes);
    if (world->mapped_pointer == NULL)
        bench_die("llcl_remote_pointer: %s", llcl_last_error());
    memset(world->mapped_pointer, 1, bytes);
    world->plain_local = (plain_region_t){world->source_memory, bytes};
    world->plain_remote = (plain_region_t){world->mapped_pointer, bytes};
    if (options->pin) {
        bench_request_t first = world_request(world, BENCH_WRITE, BENCH_MAPPED, 0, 8, llcl_no_completion(), LLCL_FLAG_DEFER);
        bench_post(world->context, BENCH_WRITE, &first); /* this also starts a progress thread that is made at the first use */
        bench_check(llcl_flush(world->context, world->peer), "llcl_flush");
        bench_pin(0);
    }
}

void world_close(bench_world_t *world)
{
    bench_check(llcl_allgather_bytes(world->context, NULL, 0, NULL), "llcl_allgather_bytes");
    bench_check(llcl_finalize(world->context), "llcl_finalize");
    free(world->registered_memory);
    free(world->source_memory);
    if (world->limits != NULL)
        limits_close(world->limits);
}

void world_settle(void) { bench_sleep_us(1500); }

double world_two_hand_overs(bench_world_t *world)
{
    world_settle();
    return 2 * limits_line(world->limits, 3000, -1, world->pin ? 1 : -1);
}

double world_ring_way(bench_world_t *world)
{
    world_settle();
    return limits_ring_way(world->limits, 3000, -1, world->pin ? 1 : -1);
}

double world_ring_message(bench_world_t *world, size_t size)
{
    world_settle();
    return limits_ring_message(world->limits, size, size > 64 ? 20000 : 400000, -1, world->pin ? 1 : -1);
}

double world_ring_shared(bench_world_t *world, int threads, int in_turns)
{
    world_settle();
    return limits_ring_shared(world->limits, threads, in_turns, in_turns ? 4000000 : 1000000);
}

double world_wake(bench_world_t *world, unsigned idle_us)
{
    return limits_wake(world->limits, idle_us, -1, world->pin ? 1 : -1);
}

bench_request_t world_request(const bench_world_t *world, bench_op_t op, bench_memory_t memory, size_t offset, size_t size,
                              llcl_completion_t on_complete, uint32_t flags)
{
    bench_request_t request;
    memset(&request, 0, sizeof request);
    request.op = op;
    llcl_remote_t remote = world->remote[memory];
    remote.offset += offset;
    llcl_local_t local = llcl_region_local(world->source, offset);
    switch (op) {
    case BENCH_WRITE:
        request.as.write = (llcl_write_params_t){.peer = world->peer, .flags = flags, .source = local, .destination = remote,
                                                 .size = size, .on_complete = on_complete};
        break;
    case BENCH_READ:
        request.as.read = (llcl_read_params_t){.peer = world->peer, .flags = flags, .source = remote, .destination = local,
                                               .size = size, .on_complete = on_complete};
        break;
    case BENCH_FETCH_ADD:
        request.as.fetch_add = (llcl_fetch_add_params_t){
            .peer = world->peer, .flags = flags, .target = remote, .operand = 1,
            .result = (uint64_t *)(void *)(world->source_memory + offset), .on_complete = on_complete};
        break;
    }
    return request;
}

plain_params_t world_plain(const bench_world_t *world, size_t offset, size_t size)
{
    return (plain_params_t){.local = &world->plain_local, .remote = &world->plain_remote, .local_offset = offset,
                            .remote_offset = offset, .size = size, .operand = 1};
}

/* Copies the beginning of the peer's buffer to `bytes`, or back. */
static void peer_bytes(const bench_world_t *world, bench_memory_t memory, int is_write, void *bytes, size_t size)
{
    if (!world->behind_wire && memory == BENCH_MAPPED) {
        memcpy(is_write ? world->mapped_pointer : bytes, is_write ? bytes : world->mapped_pointer, size);
    } else if (world->behind_wire ||
               limits_vm_copy(world->peer_process, bytes, world->peer_registered, size, is_write) != (ssize_t)size) {
        bench_request_t request = world_request(world, is_write ? BENCH_WRITE : BENCH_READ, memory, 0, size, llcl_no_completion(), 0);
        if (is_write)
            request.as.write.source = llcl_local_address(bytes);
        else
            request.as.read.destination = llcl_local_address(bytes);
        bench_check(is_write ? llcl_write(world->context, &request.as.write) : llcl_read(world->context, &request.as.read), "peer_bytes");
    }
}

void world_verify(const bench_world_t *world, bench_op_t op, bench_memory_t memory, size_t size, uint32_t flags)
{
    static unsigned char turn;
    unsigned char *bytes = malloc(size);
    uint64_t before = 0, after = 0;
    if (bytes == NULL)
        bench_die("no memory for %zu bytes", size);
    turn++;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i + (i >> 8) + turn);
    if (op == BENCH_WRITE)
        memcpy(world->source_memory, bytes, size);
    else
        peer_bytes(world, memory, 1, bytes, size);
    bench_request_t request = world_request(world, op, memory, 0, size, llcl_no_completion(), flags);
    bench_post(world->context, op, &request);
    bench_check(llcl_flush(world->context, world->peer), "llcl_flush");
    memcpy(&before, bytes, sizeof before); /* no size is below 8 */
    peer_bytes(world, memory, 0, &after, sizeof after);
    if (op == BENCH_WRITE)
        peer_bytes(world, memory, 0, bytes, size);
    if (memcmp(world->source_memory, bytes, size) != 0 || after != before + (op == BENCH_FETCH_ADD))
        bench_die("a %s of %zu bytes has moved WRONG DATA", bench_op_name(op), size);
    free(bytes);
}

double world_gigabytes(size_t size, size_t count, uint64_t ns) { return (double)size * (double)count / (double)ns; }

double world_copies(const bench_world_t *world, int is_write, bench_memory_t memory, size_t size, size_t count)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    void *to = is_write ? world->mapped_pointer : world->source_memory;
    const void *from = is_write ? world->source_memory : world->mapped_pointer;
    uint64_t before = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        if (memory == BENCH_MAPPED)
            copy(to, from, size);
        else if (limits_vm_copy(world->peer_process, world->source_memory, world->peer_registered, size, is_write) !=
                 (ssize_t)size)
            return NAN;
    }
    return world_gigabytes(size, count, bench_now_ns() - before);
}
