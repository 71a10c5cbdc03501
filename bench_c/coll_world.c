#include "coll_world.h"
#include "execution.h"

#include <stdlib.h>
#include <string.h>

void coll_must(llcl_status_t status, const char *call)
{
    if (status != LLCL_OK)
        bench_die("%s: %s: %s", call, llcl_status_string(status), llcl_last_error());
}

/* ---- ranks ---- */

static void gather(void *self, const void *mine, size_t size, void *all)
{
    coll_world_t *world = self;
    coll_must(llcl_allgather_bytes(world->context, mine, size, all), "llcl_allgather_bytes");
}

void coll_fence(coll_world_t *world) { gather(world, NULL, 0, NULL); }

/* What a rank publishes to the others. */
typedef struct card {
    llcl_remote_t shared, receive;
} card_t;

static void *pointer(coll_world_t *world, uint32_t rank, llcl_remote_t remote, size_t size)
{
    void *memory = llcl_remote_pointer(world->context, rank, remote, size);
    if (memory == NULL)
        bench_die("llcl_remote_pointer: %s", llcl_last_error());
    return memory;
}

/* The nodes of the ranks, as a table of algorithms names them: each rank says how many ranks map
 * its memory, itself included. */
static const char *reach_of(coll_world_t *world)
{
    uint32_t mine = 0, all[LOOP_MOST_RANKS], most = 0;
    for (uint32_t rank = 0; rank < world->size; rank++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        coll_must(llcl_query_peer(world->context, rank, &info), "llcl_query_peer");
        mine += rank == world->rank || info.transport != LLCL_TRANSPORT_WIRE;
    }
    gather(world, &mine, sizeof mine, all);
    for (uint32_t rank = 0; rank < world->size; rank++)
        most = all[rank] > most ? all[rank] : most;
    return most == world->size ? "node" : most == 1 ? "single" : "several";
}

static void share(coll_world_t *world, size_t bytes)
{
    card_t mine = {.receive = llcl_region_remote(world->receive, 0)}, *all = calloc(world->size, sizeof *all);
    if (all == NULL)
        bench_die("no memory for %u cards", world->size);
    coll_must(llcl_region_allocate(world->context, sizeof(coll_shared_t), 0, &world->shared_region), "llcl_region_allocate");
    mine.shared = llcl_region_remote(world->shared_region, 0);
    gather(world, &mine, sizeof mine, all);
    world->reach = reach_of(world);
    world->nodes = strcmp(world->reach, "node") != 0;
    world->shared = world->nodes ? loop_common(&world->loop, sizeof *world->shared) : pointer(world, 0, all[0].shared, sizeof *world->shared);
    if (world->rank == 0 && !world->nodes)
        world->peer_memory = pointer(world, 1, all[1].receive, bytes);
    free(all);
}

static void make_buffer(coll_world_t *world, int heap, size_t bytes, llcl_region_t **region, char **memory)
{
    void *place = NULL;
    if (!heap) {
        coll_must(llcl_region_allocate(world->context, bytes, 0, region), "llcl_region_allocate");
    } else {
        if (posix_memalign(&place, 4096, bytes) != 0)
            bench_die("no memory for %zu bytes", bytes);
        coll_must(llcl_region_register(world->context, place, bytes, 0, region), "llcl_region_register");
    }
    *memory = llcl_region_address(*region);
}

void coll_use(coll_world_t *world, int heap)
{
    const struct coll_buffers *buffers = &world->buffers[heap];
    world->send = buffers->send;
    world->receive = buffers->receive;
    world->send_memory = buffers->send_memory;
    world->receive_memory = buffers->receive_memory;
}

void coll_open(coll_world_t *world, bench_options_t *options, size_t bytes)
{
    memset(world, 0, sizeof *world);
    llcl_config_t config;
    coll_must(llcl_config_default(&config), "llcl_config_default");
    config.execution = bench_execution(options->mode);
    coll_must(llcl_init(&config, &world->context), "llcl_init");
    world->rank = llcl_rank(world->context);
    world->size = llcl_size(world->context);
    if (world->size < 2 || world->size > LOOP_MOST_RANKS)
        bench_die("%s: %u ranks, expected 2 to %d", options->program, world->size, LOOP_MOST_RANKS);
    for (int heap = 0; heap < 2; heap++) {
        make_buffer(world, heap, bytes, &world->buffers[heap].send, &world->buffers[heap].send_memory);
        make_buffer(world, heap, bytes, &world->buffers[heap].receive, &world->buffers[heap].receive_memory);
    }
    coll_use(world, 0);
    world->loop = (loop_world_t){.rank = world->rank, .size = world->size, .gather = gather, .self = world};
    share(world, bytes);
    world->loop.shared = &world->shared->loop;
    coll_must(llcl_team_world(world->context, &world->team), "llcl_team_world");
    options->show = world->rank == 0;
    loop_place(world->rank, world->size); /* this thread only: the library's threads have started before */
}

void coll_close(coll_world_t *world)
{
    coll_fence(world);
    coll_must(llcl_finalize(world->context), "llcl_finalize");
}

/* ---- plans ---- */

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}

static const char *const *const algorithms[COLL_OPS] = {
    [COLL_BARRIER] = NAMES("dissemination", "tree", "two_level"),
    [COLL_BROADCAST] = NAMES("eager", "direct", "binomial", "chain", "kary", "trinaryx3", "scatter_allgather", "two_level"),
    [COLL_ALLREDUCE] = NAMES("eager", "recursive_doubling", "direct", "rabenseifner", "ring", "two_level"),
    [COLL_REDUCE] = NAMES("eager", "direct", "binomial", "two_level"),
    [COLL_GATHER] = NAMES("eager", "direct", "binomial"),
    [COLL_SCATTER] = NAMES("eager", "direct", "push", "binomial"),
    [COLL_ALLGATHER] = NAMES("eager", "direct", "bruck", "recursive_doubling", "ring", "two_level"),
    [COLL_ALLTOALL] = NAMES("eager", "direct", "bruck", "pairwise", "two_level"),
    [COLL_REDUCE_SCATTER] = NAMES("eager", "direct", "ring", "pairwise", "two_level"),
    [COLL_SCAN] = NAMES("eager", "direct", "recursive_doubling"),
    [COLL_EXSCAN] = NAMES("eager", "direct", "recursive_doubling"),
};

const char *const *coll_algorithms(coll_op_t op) { return algorithms[op]; }

static llcl_status_t init(coll_op_t op, const llcl_coll_params_t *params, llcl_coll_t **plan)
{
    switch (op) {
    case COLL_BARRIER: return llcl_barrier_init(params, plan);
    case COLL_BROADCAST: return llcl_broadcast_init(params, plan);
    case COLL_ALLREDUCE: return llcl_allreduce_init(params, plan);
    case COLL_REDUCE: return llcl_reduce_init(params, plan);
    case COLL_GATHER: return llcl_gather_init(params, plan);
    case COLL_SCATTER: return llcl_scatter_init(params, plan);
    case COLL_ALLGATHER: return llcl_allgather_init(params, plan);
    case COLL_ALLTOALL: return llcl_alltoall_init(params, plan);
    case COLL_REDUCE_SCATTER: return llcl_reduce_scatter_init(params, plan);
    case COLL_SCAN: return llcl_scan_init(params, plan);
    default: return llcl_exscan_init(params, plan);
    }
}

static double slowest(coll_world_t *world, double mine)
{
    double *all = calloc(world->size, sizeof *all), most;
    if (all == NULL)
        bench_die("no memory for the times of %u ranks", world->size);
    gather(world, &mine, sizeof mine, all);
    most = bench_percentile(all, world->size, 100);
    free(all);
    return most;
}

static llcl_status_t now(coll_op_t op, const llcl_coll_params_t *params)
{
    switch (op) {
    case COLL_BARRIER: return llcl_team_barrier(params->team);
    case COLL_BROADCAST: return llcl_broadcast(params);
    case COLL_ALLREDUCE: return llcl_allreduce(params);
    case COLL_REDUCE: return llcl_reduce(params);
    case COLL_GATHER: return llcl_gather(params);
    case COLL_SCATTER: return llcl_scatter(params);
    case COLL_ALLGATHER: return llcl_allgather(params);
    case COLL_ALLTOALL: return llcl_alltoall(params);
    case COLL_REDUCE_SCATTER: return llcl_reduce_scatter(params);
    case COLL_SCAN: return llcl_scan(params);
    default: return llcl_exscan(params);
    }
}

static llcl_coll_params_t params_of(coll_world_t *world, coll_op_t op, size_t size)
{
    llcl_coll_params_t params;
    memset(&params, 0, sizeof params);
    params.team = world->team;
    params.send = llcl_region_local(world->send, 0);
    params.receive = llcl_region_local(world->receive, 0);
    params.type = coll_op_combines(op) ? LLCL_TYPE_F64 : LLCL_TYPE_U8;
    params.count = coll_op_combines(op) ? size / sizeof(double) : size;
    params.op = LLCL_OP_ADD;
    return params;
}

static void call_now(void *self)
{
    coll_call_t *call = self;
    llcl_status_t status = now(call->op, &call->params);
    if (status != LLCL_OK)
        coll_must(status, coll_op_name(call->op));
}

loop_form_t coll_blocking(coll_world_t *world, coll_op_t op, size_t size, coll_call_t *call)
{
    *call = (coll_call_t){.op = op, .params = params_of(world, op, size)};
    return (loop_form_t){.wait = call_now, .self = call};
}

int coll_plan(coll_world_t *world, coll_op_t op, size_t size, uint32_t engine, const char *algorithm,
              llcl_completion_t on_complete, coll_plan_t *plan)
{
    llcl_coll_params_t params = params_of(world, op, size);
    params.engine = engine;
    params.algorithm = algorithm;
    params.on_complete = on_complete;
    loop_meet(&world->loop);
    uint64_t before = bench_ticks();
    llcl_status_t status = init(op, &params, &plan->plan);
    double spent = (double)(bench_ticks() - before) / bench_ticks_per_ns();
    if (status == LLCL_ERR_UNSUPPORTED) /* all ranks get the same status */
        return 0;
    coll_must(status, coll_op_name(op));
    plan->init = slowest(world, spent);
    llcl_coll_info_t info = {.struct_size = sizeof info};
    coll_must(llcl_coll_query(plan->plan, &info), "llcl_coll_query");
    snprintf(plan->algorithm, sizeof plan->algorithm, "%s", info.algorithm);
    return 1;
}

static void start(void *self)
{
    llcl_status_t status = llcl_coll_start(self);
    if (status != LLCL_OK)
        coll_must(status, "llcl_coll_start");
}

static void wait_for(void *self)
{
    llcl_status_t status = llcl_coll_wait(self, -1);
    if (status != LLCL_OK)
        coll_must(status, "llcl_coll_wait");
}

loop_form_t coll_form(const coll_plan_t *plan) { return (loop_form_t){.start = start, .wait = wait_for, .self = plan->plan}; }

void coll_unplan(coll_plan_t *plan)
{
    coll_must(llcl_coll_free(plan->plan), "llcl_coll_free");
    plan->plan = NULL;
}

int coll_is_right(coll_world_t *world, const loop_form_t *form, coll_op_t op, size_t size)
{
    coll_fill(op, size, world->rank, world->size, world->send_memory, world->receive_memory);
    loop_once(&world->loop, form);
    size_t wrong = coll_check(op, size, world->rank, world->size, world->receive_memory);
    if (wrong > 0)
        fprintf(stderr, "%s of %zu bytes: byte %zu at rank %u is wrong\n", coll_op_name(op), size, wrong - 1, world->rank);
    return slowest(world, wrong > 0) == 0;
}

const char *coll_engine_name(uint32_t engine) { return engine == LLCL_ENGINE_THREAD ? "thread" : "offload"; }
