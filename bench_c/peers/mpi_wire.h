/* What the files of mpi_wire share. */
#ifndef MPI_WIRE_H
#define MPI_WIRE_H
#include <llcl_mpi.h>

enum { TAG = 7, HANDLER = 3, STREAM = 4, LARGE = 1 << 20 };

extern llcl_context_t *context;
extern llcl_remote_t all[2];

double now(void);
int by_size(const void *a, const void *b);
llcl_read_params_t read_of(void *where, size_t size);
void row(const char *what, double ours, double theirs, const char *unit, const char *whose);
void pairs(int rank);

#endif
