/* Shared by the benchmarks of collectives: ranks with two buffers each, plans, and the same
 * operations by bare loads and stores. */
#ifndef LLCL_BENCH_COLL_WORLD_H
#define LLCL_BENCH_COLL_WORLD_H

#include "coll_loop.h"
#include "coll_ops.h"
#include "llcl.h"

/* Memory at rank 0 that all ranks map. */
typedef struct coll_shared {
    loop_shared_t loop;
    uint64_t ready __attribute__((aligned(2 * BENCH_LINE))); /* raw broadcast: rounds for which rank 1's buffer is free */
    uint64_t data __attribute__((aligned(2 * BENCH_LINE)));  /* raw broadcast: rounds whose data rank 1 has */
    uint64_t begun __attribute__((aligned(2 * BENCH_LINE))); /* `overlap`: rounds that rank 1 has started */
    uint64_t stop;                                           /* `overlap`: rank 0 ends the rounds */
    uint64_t seen __attribute__((aligned(2 * BENCH_LINE)));  /* `overlap`: when rank 1 had the last round's data, ns */
} coll_shared_t;

typedef struct coll_world {
    loop_world_t loop;
    uint32_t rank, size;
    llcl_context_t *context;
    llcl_team_t *team;
    llcl_region_t *send, *receive;
    char *send_memory, *receive_memory;
    struct coll_buffers {
        llcl_region_t *send, *receive;
        char *send_memory, *receive_memory;
    } buffers[2]; /* 0: allocated by the library; 1: from the heap, registered */
    llcl_region_t *shared_region;
    coll_shared_t *shared;
    const char *reach; /* node, single or several, as in a table for LLCL_COLL_TABLE */
    int nodes;         /* some ranks do not map each other's memory */
    char *peer_memory; /* rank 0: the receive buffer of rank 1, NULL on several nodes */
    uint64_t raw_rounds;
} coll_world_t;

void coll_must(llcl_status_t status, const char *call);

/* Collective. `bytes`: the size of each of the two buffers. Sets `options->show` if this rank
 * prints. */
void coll_open(coll_world_t *world, bench_options_t *options, size_t bytes);
void coll_close(coll_world_t *world);
void coll_fence(coll_world_t *world); /* collective; sleeps */
void coll_use(coll_world_t *world, int heap); /* chooses the buffers: those from the heap, or the allocated ones */

typedef struct coll_plan {
    llcl_coll_t *plan;
    double init;        /* the time of init at the slowest rank, ns */
    char algorithm[32]; /* the algorithm in use */
} coll_plan_t;

/* Collective. `algorithm` NULL: the library chooses. Returns 0 if the algorithm does not support
 * this case. */
int coll_plan(coll_world_t *world, coll_op_t op, size_t size, uint32_t engine, const char *algorithm,
              llcl_completion_t on_complete, coll_plan_t *plan);
loop_form_t coll_form(const coll_plan_t *plan);
/* The blocking form of an operation, with the world's buffers. */
typedef struct coll_call {
    coll_op_t op;
    llcl_coll_params_t params;
} coll_call_t;
loop_form_t coll_blocking(coll_world_t *world, coll_op_t op, size_t size, coll_call_t *call);
void coll_unplan(coll_plan_t *plan);
/* Collective: runs one more round with known data. Returns 1 if the result is right at all
 * ranks. */
int coll_is_right(coll_world_t *world, const loop_form_t *form, coll_op_t op, size_t size);

/* The names of all algorithms of an operation; NULL behind the last one. */
const char *const *coll_algorithms(coll_op_t op);

const char *coll_engine_name(uint32_t engine);

/* ---- without the library ---- */

loop_form_t raw_exchange(coll_world_t *world); /* see loop_meet */
double raw_exchanges(coll_world_t *world); /* collective, two ranks: the time of one of many in a row, ns */

/* A broadcast of two ranks. The receiver sets a flag when its buffer is free; the root copies the
 * data there and sets another flag. */
typedef struct raw_broadcast {
    coll_world_t *world;
    size_t size;
} raw_broadcast_t;
loop_form_t raw_broadcast(raw_broadcast_t *broadcast);

/* Collective: rank 0 measures repeated copies between its own buffers while the others sleep; ns
 * for a copy. */
double raw_memcpy(coll_world_t *world, size_t size, double budget_ms);

#endif
