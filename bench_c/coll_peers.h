/* The machine's MPIs, measured in the same run. Rank 0 starts them while all other ranks sleep. See
 * peers/. */
#ifndef LLCL_BENCH_COLL_PEERS_H
#define LLCL_BENCH_COLL_PEERS_H

#include "coll_world.h"

enum { PEER_INIT, PEER_START, PEER_ALONE, PEER_LOOP, PEER_VALUES }; /* us, ns, us, us */
enum { PEER_PURE = 0, PEER_BUSY = 1 };                              /* values of overlap lines: us, percent */

typedef struct peer_row {
    char mpi[16], form[24];
    coll_op_t op;
    size_t size;
    int wrong; /* the number of wrong results; such a row has no figures */
    bench_series_t values[PEER_VALUES];
} peer_row_t;

typedef struct peers {
    peer_row_t *rows;
    int count;
    char versions[192]; /* names and versions of the MPIs that ran, and which failed; empty: none ran */
} peers_t;

/* Collective. Runs `command` (NULL: does nothing) with the arguments for peers/start. Only rank 0
 * has the rows. Several runs add to the same rows. */
void peers_run(peers_t *peers, coll_world_t *world, const char *command, const char *arguments);
void peers_free(peers_t *peers);

/* The best value of a repeat (of the last one, if there were fewer), or NAN. `mpi` NULL: of any
 * MPI. Counts all forms. */
double peers_best(const peers_t *peers, const char *mpi, coll_op_t op, size_t size, int value, int repeat);

#endif
