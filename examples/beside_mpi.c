/* A program that uses the library beside MPI. mpirun starts it, and the library's ranks are those
 * of MPI_COMM_WORLD. The same program runs under llcl-run.
 * Build: mpicc -o beside_mpi beside_mpi.c $(pkg-config --cflags --libs llcl)
 * Run: mpirun -n 4 ./beside_mpi */
#include <llcl_mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int level;
    llcl_context_t *context;
    /* Between machines the library's threads also call MPI. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    uint32_t rank = llcl_rank(context), size = llcl_size(context);

    /* Each rank adds its number to a word of rank 0 by the library. MPI adds the numbers as well;
     * under llcl-run it has one rank only. */
    llcl_region_t *region;
    llcl_remote_t *sums = calloc(size, sizeof *sums);
    uint64_t mine = (uint64_t)rank + 1, expected = 0;
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, sums));
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    add.target = sums[0];
    add.operand = mine;
    LLCL_CHECK(llcl_fetch_add(context, &add));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    MPI_Reduce(&mine, &expected, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%u ranks: %llu by the library, %llu by MPI\n", size,
               (unsigned long long)*(uint64_t *)llcl_region_address(region), (unsigned long long)expected);

    LLCL_CHECK(llcl_finalize(context));
    free(sums);
    /* MPICH over TCP may hang in MPI_Finalize while another rank still makes progress in MPI. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
