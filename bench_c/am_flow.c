#include "am_flow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ID_COUNT 1
#define WARM_UP_MS 15
#define LOST_AFTER_S 10

/* At the beginning of each rank's mapped region. */
typedef struct board {
    uint64_t stop __attribute__((aligned(2 * BENCH_LINE))); /* the number of the last flow that has ended */
    uint64_t counts[FLOW_LANES] __attribute__((aligned(2 * BENCH_LINE))); /* messages handled, by lane */
} board_t;

struct flow_world {
    bench_world_t *world;
    board_t *mine;
    llcl_remote_t *addresses; /* the boards' addresses, by rank */
    board_t **boards;         /* rank 0: the boards as it maps them */
    uint64_t number;          /* the number of the present flow */
};

typedef struct sender {
    uint64_t lane __attribute__((aligned(2 * BENCH_LINE))); /* the header */
    uint64_t accepted;
    llcl_context_t *context;
    const board_t *board;
    uint64_t number;
    llcl_am_params_t params;
    int try_form;
    pthread_t thread;
} sender_t;

static sender_t senders[FLOW_LANES];

/* The result of a flow at one rank. */
typedef struct account {
    uint64_t accepted;
    uint32_t target; /* UINT32_MAX: the rank has not sent */
} account_t;

static void on_message(llcl_am_t *message, void *data)
{
    board_t *board = data;
    const uint64_t *lane = am_view(message).header;
    am_count(&board->counts[*lane]);
}

flow_world_t *flow_open(bench_world_t *world, bench_options_t *options, size_t copies)
{
    flow_world_t *flows = calloc(1, sizeof *flows);
    if (flows == NULL)
        bench_die("no memory");
    flows->world = world;
    am_open(world, options, AM_COPIES_FROM + copies);
    flows->mine = llcl_region_address(world->mapped);
    memset(flows->mine, 0, sizeof *flows->mine);
    am_register(world, ID_COUNT, on_message, flows->mine);
    llcl_remote_t address = llcl_region_remote(world->mapped, 0);
    flows->addresses = calloc(world->size, sizeof *flows->addresses);
    flows->boards = calloc(world->size, sizeof *flows->boards);
    if (flows->addresses == NULL || flows->boards == NULL)
        bench_die("no memory for %u boards", world->size);
    bench_check(llcl_allgather_bytes(world->context, &address, sizeof address, flows->addresses), "llcl_allgather_bytes");
    for (uint32_t rank = 0; world->rank == 0 && rank < world->size; rank++) {
        flows->boards[rank] = llcl_remote_pointer(world->context, rank, flows->addresses[rank], sizeof(board_t));
        if (flows->boards[rank] == NULL)
            bench_die("llcl_remote_pointer: %s", llcl_last_error());
    }
    return flows;
}

void flow_close(flow_world_t *flows)
{
    world_close(flows->world);
    free(flows->addresses);
    free(flows->boards);
    free(flows);
}

/* ---- sending ---- */

static uint32_t target_of(const flow_t *flow, uint32_t rank)
{
    switch (flow->shape) {
    case FLOW_PAIR: return rank == 0 ? 1 : UINT32_MAX;
    case FLOW_RING: return rank < flow->ranks ? (rank + 1) % flow->ranks : UINT32_MAX;
    default: return rank >= 1 && rank <= flow->ranks ? 0 : UINT32_MAX;
    }
}

static void *send_all(void *data)
{
    sender_t *s = data;
    uint64_t accepted = 0;
    while (__atomic_load_n(&s->board->stop, __ATOMIC_RELAXED) < s->number) {
        llcl_status_t status = llcl_try_am_async(s->context, &s->params);
        if (status > 0) {
            if (s->try_form) {
                sched_yield();
                continue;
            }
            status = llcl_am_async(s->context, &s->params);
        }
        if (status < 0)
            bench_check(status, "llcl_am_async");
        accepted++;
    }
    s->accepted = accepted;
    return NULL;
}

static void prepare(const flow_world_t *flows, const flow_t *flow, uint32_t target, int thread)
{
    sender_t *s = &senders[thread];
    memset(s, 0, sizeof *s);
    s->lane = flow->shape == FLOW_INCAST ? flows->world->rank - 1 : (uint64_t)thread;
    s->context = flows->world->context;
    s->board = flows->mine;
    s->number = flows->number;
    s->try_form = flow->try_form;
    s->params = am_message(target, ID_COUNT, &s->lane, sizeof s->lane);
    if (flow->size > sizeof s->lane) {
        s->params.payload = flows->world->source_memory;
        s->params.payload_size = flow->size;
    }
}

/* ---- timing ---- */

/* A receiver waits inside the library, where it handles messages. Other ranks sleep. */
static void pass(const flow_world_t *flows, const flow_t *flow, unsigned ms)
{
    if (flow->shape != FLOW_INCAST)
        bench_sleep_us(ms * 1000);
    else if (llcl_wait_word(flows->world->context, &flows->mine->stop, UINT64_MAX, (int64_t)ms * 1000000) != LLCL_ERR_TIMEOUT)
        bench_die("the wait of %u ms has ended early: %s", ms, llcl_last_error());
}

static uint64_t snapshot(const flow_world_t *flows, uint64_t (*counts)[FLOW_LANES])
{
    for (uint32_t rank = 0; rank < flows->world->size; rank++)
        for (int lane = 0; lane < FLOW_LANES; lane++)
            counts[rank][lane] = __atomic_load_n(&flows->boards[rank]->counts[lane], __ATOMIC_RELAXED);
    return bench_now_ns();
}

static void stop_all(const flow_world_t *flows)
{
    for (uint32_t rank = 0; rank < flows->world->size; rank++) {
        llcl_write_value_params_t stop;
        memset(&stop, 0, sizeof stop);
        stop.peer = rank;
        stop.destination = flows->addresses[rank];
        stop.destination.offset += offsetof(board_t, stop);
        stop.value = flows->number;
        stop.size = sizeof stop.value;
        bench_check(llcl_write_value(flows->world->context, &stop), "llcl_write_value");
    }
}

static int is_lane(const flow_t *flow, uint32_t rank, int lane)
{
    switch (flow->shape) {
    case FLOW_PAIR: return rank == 1 && lane < flow->threads;
    case FLOW_RING: return rank < flow->ranks && lane < flow->threads;
    default: return rank == 0 && lane < (int)flow->ranks;
    }
}

/* Rank 0: lets the flow run for the window of time, and ends it. */
static flow_result_t window(const flow_world_t *flows, const flow_t *flow)
{
    uint64_t(*counts)[FLOW_LANES] = calloc(2 * (size_t)flows->world->size, sizeof *counts);
    uint64_t(*later)[FLOW_LANES] = counts + flows->world->size;
    if (counts == NULL)
        bench_die("no memory for the counts");
    pass(flows, flow, WARM_UP_MS);
    uint64_t begin = snapshot(flows, counts);
    pass(flows, flow, flow->ms);
    uint64_t end = snapshot(flows, later);
    stop_all(flows);
    uint64_t total = 0, least = UINT64_MAX, most = 0, lanes = 0;
    for (uint32_t rank = 0; rank < flows->world->size; rank++)
        for (int lane = 0; lane < FLOW_LANES; lane++)
            if (is_lane(flow, rank, lane)) {
                uint64_t came = later[rank][lane] - counts[rank][lane];
                total += came;
                lanes++;
                least = came < least ? came : least;
                most = came > most ? came : most;
            }
    free(counts);
    return (flow_result_t){.millions = (double)total / (double)(end - begin) * 1e3,
                           .slowest_fastest = most ? (double)least / (double)most : NAN,
                           .slowest_mean = total ? (double)least * (double)lanes / (double)total : NAN};
}

/* Every rank: waits for the messages that peers had accepted for it, and checks that no others have
 * come. Returns the number of messages accepted at all ranks. */
static uint64_t settle(flow_world_t *flows, uint64_t came_before, account_t mine)
{
    account_t *all = calloc(flows->world->size, sizeof *all);
    if (all == NULL)
        bench_die("no memory for the accounts");
    bench_check(llcl_allgather_bytes(flows->world->context, &mine, sizeof mine, all), "llcl_allgather_bytes");
    uint64_t expected = 0, accepted = 0, came;
    for (uint32_t rank = 0; rank < flows->world->size; rank++) {
        accepted += all[rank].accepted;
        if (all[rank].target == flows->world->rank)
            expected += all[rank].accepted;
    }
    free(all);
    uint64_t give_up = bench_now_ns() + LOST_AFTER_S * 1000000000ull;
    for (;;) {
        came = 0;
        for (int lane = 0; lane < FLOW_LANES; lane++)
            came += __atomic_load_n(&flows->mine->counts[lane], __ATOMIC_RELAXED);
        if (came - came_before >= expected || bench_now_ns() > give_up)
            break;
        bench_sleep_us(200);
    }
    if (came - came_before != expected) {
        llcl_stats_t stats = {.struct_size = sizeof stats};
        bench_check(llcl_stats_get(flows->world->context, &stats), "llcl_stats_get");
        bench_die("rank %u has counted %llu messages, expected %llu; in all it counted %llu and the library %llu, skips %llu",
                  flows->world->rank, (unsigned long long)(came - came_before), (unsigned long long)expected,
                  (unsigned long long)came, (unsigned long long)stats.am_handled, (unsigned long long)stats.skips);
    }
    am_fence(flows->world);
    return accepted;
}

flow_result_t flow_run(flow_world_t *flows, const flow_t *flow)
{
    uint32_t rank = flows->world->rank, target = target_of(flow, rank);
    int threads = target == UINT32_MAX ? 0 : flow->threads;
    int here = threads == 1 && rank != 0; /* the calling thread is the sender */
    flow_result_t result = {0};
    account_t mine = {0, target};
    uint64_t came_before = 0;
    for (int lane = 0; lane < FLOW_LANES; lane++)
        came_before += flows->mine->counts[lane];
    flows->number++;
    am_fence(flows->world);
    for (int i = 0; i < threads; i++) {
        prepare(flows, flow, target, i);
        if (!here && pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) != 0)
            bench_die("pthread_create of thread %d failed", i);
    }
    if (here)
        send_all(&senders[0]);
    if (rank == 0)
        result = window(flows, flow);
    else
        bench_check(llcl_wait_word(flows->world->context, &flows->mine->stop, flows->number, -1), "llcl_wait_word");
    for (int i = 0; i < threads; i++) {
        if (!here)
            pthread_join(senders[i].thread, NULL);
        mine.accepted += senders[i].accepted;
    }
    result.accepted = settle(flows, came_before, mine);
    return result;
}
