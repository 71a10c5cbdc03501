/* What the benchmarks of collectives share: ranks with two buffers each, plans, and the same games by bare loads and stores. */
#ifndef LLCL_BENCH_COLL_WORLD_H
#define LLCL_BENCH_COLL_WORLD_H

#include "coll_loop.h"
#include "coll_ops.h"
#include "llcl.h"

/* What all ranks map; it lies with rank 0. */
typedef struct coll_shared {
    loop_shared_t loop;
    uint64_t ready __attribute__((aligned(2 * BENCH_LINE))); /* raw broadcast: rounds for which rank 1 has made room */
    uint64_t data __attribute__((aligned(2 * BENCH_LINE)));  /* and those whose data it has */
    uint64_t begun __attribute__((aligned(2 * BENCH_LINE))); /* `overlap`: rounds that rank 1 has started */
    uint64_t stop;                                           /* rank 0 has had enough rounds */
    uint64_t seen __attribute__((aligned(2 * BENCH_LINE)));  /* and when it had the data of the last one, ns */
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
    } buffers[2]; /* allocated by the library; registered: from the heap */
    llcl_region_t *shared_region;
    coll_shared_t *shared;
    int nodes;         /* some ranks do not map each other's memory */
    char *peer_memory; /* rank 0: the receive buffer of rank 1; on several nodes NULL */
    uint64_t raw_rounds;
} coll_world_t;

void coll_must(llcl_status_t status, const char *call);

/* Collective. `bytes`: of each of the two buffers. Afterwards `options->show` says whether this rank prints. */
void coll_open(coll_world_t *world, bench_options_t *options, size_t bytes);
void coll_close(coll_world_t *world);
void coll_fence(coll_world_t *world); /* collective; sleeps */
void coll_use(coll_world_t *world, int heap); /* from now on buffers lie in the heap, or in allocated memory */

typedef struct coll_plan {
    llcl_coll_t *plan;
    double init;        /* of the slowest rank, ns */
    char algorithm[32]; /* the one in use */
} coll_plan_t;

/* Collective. `algorithm` NULL: the library's choice. 0: that algorithm cannot do this. */
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
/* Collective: one more round with known data; 1: right at all ranks. */
int coll_is_right(coll_world_t *world, const loop_form_t *form, coll_op_t op, size_t size);

/* The names of all algorithms of an operation; NULL behind the last one. */
const char *const *coll_algorithms(coll_op_t op);

const char *coll_engine_name(uint32_t engine);

/* ---- without the library ---- */

loop_form_t raw_exchange(coll_world_t *world); /* see loop_meet */
double raw_exchanges(coll_world_t *world); /* collective, two ranks: one of many that follow each other, ns */

/* Two ranks: room is told by a flag, the data is copied to where it shall be, and told by a flag. */
typedef struct raw_broadcast {
    coll_world_t *world;
    size_t size;
} raw_broadcast_t;
loop_form_t raw_broadcast(raw_broadcast_t *broadcast);

/* Collective; measured by rank 0 while the others sleep: one copy within its own buffers, again and again, ns. */
double raw_memcpy(coll_world_t *world, size_t size, double budget_ms);

#endif
