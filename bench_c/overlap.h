/* A broadcast while the main threads compute. */
#ifndef LLCL_BENCH_OVERLAP_H
#define LLCL_BENCH_OVERLAP_H

#include "coll_world.h"

/* Collective, two ranks. Both start a round, rank 1 first, and compute; rank 0 is the root. Returns
 * the time from the root's start until rank 1 sees the data in its buffer (`completed` 0), or sees
 * the word of its completion change (`completed` 1): the median of `rounds`, in ns. No main thread
 * calls the library in between. Before each round the progress threads have time to go to sleep. */
double overlap_past(coll_world_t *world, size_t size, uint32_t engine, int completed, unsigned rounds);

#endif
