/* What the files of mpi_wire share. */
#ifndef MPI_WIRE_H
#define MPI_WIRE_H
#include <llcl_mpi.h>

enum { TAG = 7, HANDLER = 3, STREAM = 4, LARGE = 1 << 20, UNDER_WAY = 4 };
enum { LATENCIES = 500, WARM = 5000 }; /* calls of latency(): those that count, those before */

extern llcl_context_t *context;
extern llcl_remote_t all[2];
extern char *large;

double now(void);
void meet(void);
int by_size(const void *a, const void *b);
llcl_read_params_t read_of(void *where, size_t size);
void must(int right, const char *what); /* otherwise it ends the job */
void row(const char *what, double ours, double theirs, const char *unit, const char *whose);
double latency(void (*call)(uint64_t *));
void our_read(uint64_t *word);
void reads(int rank);
void posts(int rank);
void transfers(int rank);
void streams(int rank);
void raw_limit(int rank, double read);
void bare_begin(void);
void bare_ready(void);
void bare_post(void *to, size_t size);
void bare_end(void);
void bare_large_reads(void);
void bare_serve(int count);
void bare_finish(void);

#endif
