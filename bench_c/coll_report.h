/* The measurements of `coll`, and their tables. */
#ifndef LLCL_BENCH_COLL_REPORT_H
#define LLCL_BENCH_COLL_REPORT_H

#include "coll_peers.h"

enum { INIT, START, ALONE, LOOP, VALUES };

/* One operation, size, engine and algorithm. */
typedef struct cell {
    coll_op_t op;
    size_t size;
    uint32_t engine;
    const char *asked;  /* the algorithm's name; NULL: the library chooses */
    int heap;           /* buffers from the heap; otherwise allocated by the library */
    int blocking;       /* the blocking form; otherwise a plan */
    char algorithm[32]; /* the algorithm in use; empty: `asked` does not support this case */
    bench_series_t values[VALUES];
} cell_t;

/* Without the library. */
typedef struct raw {
    coll_op_t op;
    size_t size;
    bench_series_t alone, loop, copy;
} raw_t;

typedef struct coll {
    coll_world_t world;
    bench_options_t options;
    peers_t peers;
    cell_t *cells;
    int count, raws, wrong;
    raw_t raw[1 + COLL_MOST_SIZES];
} coll_t;

extern const uint32_t coll_engines[2];
int coll_crowded(const coll_t *coll);  /* more ranks than cores */
void coll_table(const coll_t *coll);   /* prints all measurements */
void coll_targets(const coll_t *coll); /* prints those with a target, and writes all to the file */

#endif
