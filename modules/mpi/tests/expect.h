/* Shared by the tests of this folder. */
#ifndef EXPECT_H
#define EXPECT_H
#include <llcl_mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

/* This process's rank in MPI. */
static int rank;

#define EXPECT(condition)                                                                              \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: rank %d: not so: %s (%s)\n", __FILE__, __LINE__, rank, #condition, \
                    llcl_last_error());                                                                \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                              \
        }                                                                                              \
    } while (0)

/* Initialises MPI with this level of threads, then the library with all ranks. */
static inline llcl_context_t *start(int threads)
{
    int level;
    llcl_context_t *context;
    MPI_Init_thread(NULL, NULL, threads, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    return context;
}

/* Ends MPI. MPICH over TCP hangs in MPI_Finalize if one rank has ended its part of it while another
 * one is still inside the barrier (docs/linking.md, "The end"). */
static inline void end_mpi(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(100000);
    MPI_Finalize();
}

#endif
