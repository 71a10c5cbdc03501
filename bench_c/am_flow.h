/* One-way floods of active messages. A flow_t describes which ranks send to which, with how many
 * threads; the result is what arrives in a window of time. Every rank calls flow_run with the same
 * description. Rank 0 times the window and gets the result. */
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
    int threads;   /* threads of each sender */
    size_t size;   /* 8: a header only; else the bytes of a payload beside the header */
    int try_form;  /* a sender without credit calls sched_yield and tries again, instead of llcl_am_async */
    unsigned ms;   /* the length of the window */
} flow_t;

typedef struct flow_result {
    double millions;                     /* messages handled per second by all receivers together */
    double slowest_fastest, slowest_mean; /* ratios between lanes: sending threads, or senders of an incast */
    uint64_t accepted;                   /* messages accepted, also outside of the window */
} flow_result_t;

typedef struct flow_world flow_world_t;

/* Collective. `copies`: bytes at the peer for am_copy. */
flow_world_t *flow_open(bench_world_t *world, bench_options_t *options, size_t copies);
flow_result_t flow_run(flow_world_t *flows, const flow_t *flow);
void flow_close(flow_world_t *flows);

#endif
