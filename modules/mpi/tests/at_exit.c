/* A program that ends its context in an exit handler: the C library has then destroyed the
 * variables of the thread. The argument is the level of threads that the program asks MPI for. */
#include "expect.h"
#include <llcl_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static llcl_context_t *context;

static void end(void)
{
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    printf("at_exit: rank %d has ended\n", rank);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int level = argc > 1 && strcmp(argv[1], "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, given;
    llcl_region_t *region;
    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    LLCL_CHECK(llcl_region_allocate(context, 4096, 0, &region));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    return atexit(end);
}
