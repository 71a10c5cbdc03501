/* The machine's MPIs, measured in the same run: started by rank 0 while all other ranks sleep. See peers/. */
#ifndef LLCL_BENCH_COLL_PEERS_H
#define LLCL_BENCH_COLL_PEERS_H

#include "coll_world.h"

enum { PEER_INIT, PEER_START, PEER_ALONE, PEER_LOOP, PEER_VALUES }; /* us, ns, us, us */
enum { PEER_PURE = 0, PEER_BUSY = 1 };                              /* of lines about overlap: us, percent */

typedef struct peer_row {
    char mpi[16], form[24];
    coll_op_t op;
    size_t size;
    int wrong; /* how often it had a wrong result: no figures then */
    bench_series_t values[PEER_VALUES];
} peer_row_t;

typedef struct peers {
    peer_row_t *rows;
    int count;
    char versions[80]; /* of the MPIs that ran, by their names; empty: none did */
} peers_t;

/* Collective. `command` NULL: nothing happens. `arguments`: for peers/start. Lines of several runs go to the same rows, which only
   rank 0 has. */
void peers_run(peers_t *peers, coll_world_t *world, const char *command, const char *arguments);
void peers_free(peers_t *peers);

/* The best of one repeat (the last one, where there were fewer); NAN: none. `mpi` NULL: any, in any of its forms. */
double peers_best(const peers_t *peers, const char *mpi, coll_op_t op, size_t size, int value, int repeat);

#endif
