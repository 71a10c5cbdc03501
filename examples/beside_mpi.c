/* Beside MPI: ranks that mpirun has started use both. MPI's numbers and one MPI_Allgather are handed over, and the library's ranks
 * are MPI's.
 * Build: mpicc -o beside_mpi beside_mpi.c $(pkg-config --cflags --libs llcl)
 * Run:   mpirun -n 4 ./beside_mpi */
#include <llcl.h>
#include <mpi.h>
#include <stdio.h>

static int32_t allgather(void *comm, const void *mine, size_t size, void *all)
{
    return MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, *(MPI_Comm *)comm) != MPI_SUCCESS;
}

static void end_job(void *comm, int32_t code)
{
    MPI_Abort(*(MPI_Comm *)comm, code);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank, size, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    llcl_bootstrap_t start = LLCL_BOOTSTRAP_INIT;
    start.rank = (uint32_t)rank;
    start.size = (uint32_t)size;
    start.allgather = allgather;
    start.abort = end_job;
    start.data = &comm;
    llcl_config_t config = LLCL_CONFIG_INIT;
    config.bootstrap = &start;
    llcl_context_t *context;
    LLCL_CHECK(llcl_init(&config, &context));

    /* Each rank adds its number at rank 0, by the library; and all of them by MPI. */
    llcl_region_t *region;
    llcl_remote_t sums[64];
    uint64_t mine = (uint64_t)rank + 1, expected = 0;
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, sums));
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    add.target = sums[0];
    add.operand = mine;
    LLCL_CHECK(llcl_fetch_add(context, &add));
    LLCL_CHECK(llcl_barrier(context));
    MPI_Reduce(&mine, &expected, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("%d ranks: %llu by the library, %llu by MPI\n", size,
               (unsigned long long)*(uint64_t *)llcl_region_address(region), (unsigned long long)expected);

    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
