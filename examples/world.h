/* The beginning and the end of the larger examples. Their ranks are those of llcl-run, or, if mpicc
 * -DWITH_MPI compiles them, those of mpirun, with MPI beside the library. */
#ifndef EXAMPLES_WORLD_H
#define EXAMPLES_WORLD_H
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef WITH_MPI
#include <mpi.h>

static int32_t allgather(void *comm, const void *mine, size_t size, void *all)
{
    return MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, *(MPI_Comm *)comm) != MPI_SUCCESS;
}
#endif

/* `config` may hold settings of the program's own. */
static inline llcl_context_t *begin(int *argc, char ***argv, llcl_config_t config)
{
    llcl_context_t *context;
#ifdef WITH_MPI
    static MPI_Comm comm;
    llcl_bootstrap_t start = LLCL_BOOTSTRAP_INIT;
    int rank, size, level;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    start.rank = (uint32_t)rank;
    start.size = (uint32_t)size;
    start.allgather = allgather;
    start.data = &comm;
    config.bootstrap = &start;
#else
    (void)argc, (void)argv;
#endif
    LLCL_CHECK(llcl_init(&config, &context));
    return context;
}

/* Returns the exit code. `wrong`: an error that this rank has found, which it prints; NULL:
 * none. */
static inline int end(llcl_context_t *context, const char *wrong)
{
    if (wrong != NULL)
        fprintf(stderr, "rank %" PRIu32 ": %s\n", llcl_rank(context), wrong);
    LLCL_CHECK(llcl_finalize(context));
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return wrong != NULL;
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Like calloc(), and ends the program if there is no memory. */
static inline void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu times %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

/* The n-th argument, or its default. */
static inline size_t argument_up_to(long most, int argc, char **argv, int n, size_t by_default)
{
    if (argc <= n)
        return by_default;
    char *end;
    long number = strtol(argv[n], &end, 10);
    if (*end != 0 || number < 1 || number > most) {
        fprintf(stderr, "%s: argument %d is %s, expected 1 to %ld\n", argv[0], n, argv[n], most);
        exit(2);
    }
    return (size_t)number;
}

static inline size_t argument(int argc, char **argv, int n, size_t by_default)
{
    return argument_up_to(1 << 24, argc, argv, n, by_default);
}

#endif
