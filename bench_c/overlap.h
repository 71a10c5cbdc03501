/* A broadcast past computing main threads. */
#ifndef LLCL_BENCH_OVERLAP_H
#define LLCL_BENCH_OVERLAP_H

#include "coll_world.h"

/* Collective, two ranks. Both start a round, rank 1 first, and compute, rank 0 being the root; the time from the root's start until
   rank 1 has the data: it sees that in its buffer (`told` 0), or is told by the word of its completion (1). Nobody calls the
   library in between. Median of `rounds`, ns; before each the progress threads have had time to go to sleep. */
double overlap_past(coll_world_t *world, size_t size, uint32_t engine, int told, unsigned rounds);

#endif
