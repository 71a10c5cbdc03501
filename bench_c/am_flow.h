/* One-way floods of active messages: who sends to whom, with how many threads, and what arrives in a window of time.
   Every rank calls flow_run with the same description; rank 0 times the window and has the result. */
#ifndef LLCL_BENCH_AM_FLOW_H
#define LLCL_BENCH_AM_FLOW_H

#include "am.h"

#define FLOW_LANES 64 /* threads of one sender, or senders of one receiver */

typedef enum flow_shape {
    FLOW_PAIR,  /* rank 0 sends to rank 1 */
    FLOW_RING,  /* each of the first `ranks` ranks sends to the next one */
    FLOW_INCAST /* ranks 1 to `ranks` send to rank 0 */
} flow_shape_t;

typedef struct flow {
    flow_shape_t shape;
    uint32_t ranks;
    int threads;   /* of each sender */
    size_t size;   /* 8: the header; else the payload beside it */
    int try_form;  /* sched_yield and try again where there is no credit, instead of llcl_am_async */
    unsigned ms;   /* of the window */
} flow_t;

typedef struct flow_result {
    double millions;                     /* messages handled per second, all receivers together */
    double slowest_fastest, slowest_mean; /* of the lanes: sending threads, or senders of an incast */
    uint64_t accepted;                   /* messages, also outside of the window */
} flow_result_t;

typedef struct flow_world flow_world_t;

/* `copies`: bytes that am_copy may write at the peer. */
flow_world_t *flow_open(bench_world_t *world, bench_options_t *options, size_t copies);
flow_result_t flow_run(flow_world_t *flows, const flow_t *flow);
void flow_close(flow_world_t *flows);

#endif
