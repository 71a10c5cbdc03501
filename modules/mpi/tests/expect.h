/* Shared by the tests of this folder. */
#ifndef EXPECT_H
#define EXPECT_H
#include <llcl.h>
#include <mpi.h>
#include <stdio.h>

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

#endif
