/* MPI fails: the program replaces MPI_Irecv, MPI_Test and MPI_Testsome by functions that return an
 * error. First MPI_Irecv fails inside llcl_init_mpi, which must end with an error, cancel the
 * receives that it has posted and free its communicators. Later MPI_Test fails, which a read of
 * 8 bytes must notice, or with the argument "some" MPI_Testsome, which a read of 1 MiB must notice:
 * a read must end with a status, and llcl_last_error must have MPI's sentence. 2 ranks, which
 * initialise the library by the communicator's Fortran handle. Before, a call without MPI, one
 * without a communicator and one with an intercommunicator must be refused with a sentence, and at
 * the end one after MPI. */
#include "expect.h"
#include <llcl_mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY (1 << 20)

static int posted, cancelled, freed, left = -1, broken, breaks_some;
/* The memory that is read stays mapped to the end: an MPI that has failed may still read it. */
static char bytes[MANY], from[MANY];

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (left == 0)
        return MPI_ERR_OTHER;
    left -= left > 0;
    posted++;
    return PMPI_Irecv(bytes, count, type, source, tag, comm, request);
}

int MPI_Cancel(MPI_Request *request)
{
    cancelled++;
    return PMPI_Cancel(request);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    freed++;
    return PMPI_Comm_free(comm);
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    if (!breaks_some && __atomic_load_n(&broken, __ATOMIC_RELAXED)) {
        *ended = 0;
        return MPI_ERR_OTHER;
    }
    return PMPI_Test(request, ended, status);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    if (breaks_some && __atomic_load_n(&broken, __ATOMIC_RELAXED)) {
        *ended = MPI_UNDEFINED;
        return MPI_ERR_OTHER;
    }
    return PMPI_Testsome(count, requests, ended, indices, statuses);
}

/* What is no intracommunicator is refused with a sentence. MPI's handler of errors, which would end
 * the job, is not called. */
static void no_intracommunicator(void)
{
    MPI_Comm own, both;
    llcl_context_t *context = NULL;
    EXPECT(llcl_init_mpi(MPI_COMM_NULL, NULL, &context) == LLCL_ERR_INVALID);
    EXPECT(strstr(llcl_last_error(), "comm is MPI_COMM_NULL") != NULL);
    EXPECT(llcl_init_mpi_fortran(MPI_Comm_c2f(MPI_COMM_NULL), NULL, &context) == LLCL_ERR_INVALID);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 0, &both);
    EXPECT(llcl_init_mpi(both, NULL, &context) == LLCL_ERR_INVALID);
    EXPECT(strstr(llcl_last_error(), "comm is an intercommunicator") != NULL);
    EXPECT(context == NULL);
    PMPI_Comm_free(&both);
    PMPI_Comm_free(&own);
}

int main(int argc, char **argv)
{
    int level;
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t all[2];
    breaks_some = argc > 1 && strcmp(argv[1], "some") == 0;
    EXPECT(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context) == LLCL_ERR_STATE);
    EXPECT(strstr(llcl_last_error(), "MPI is not initialised") != NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    no_intracommunicator();

    left = 20;
    EXPECT(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context) == LLCL_ERR_SYSTEM);
    EXPECT(strstr(llcl_last_error(), "MPI_Irecv") != NULL);
    EXPECT(posted == 20 && cancelled == 20 && freed == 2);
    left = -1;
    MPI_Barrier(MPI_COMM_WORLD);

    LLCL_CHECK(llcl_init_mpi_fortran(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, &context));
    LLCL_CHECK(llcl_region_register(context, from, MANY, 0, &region));
    all[rank] = llcl_region_remote(region, 0);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, sizeof all[0], MPI_BYTE, MPI_COMM_WORLD);
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    get.peer = (uint32_t)(1 - rank);
    get.source = all[1 - rank];
    get.destination = llcl_local_address(bytes);
    get.size = breaks_some ? MANY : 8;
    LLCL_CHECK(llcl_read(context, &get));
    MPI_Barrier(MPI_COMM_WORLD);
    __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
    /* A read can still end well: a thread may be inside MPI's own function already. */
    llcl_status_t status;
    do
        status = llcl_read(context, &get);
    while (status == LLCL_OK);
    EXPECT(status == LLCL_ERR_PEER_DEAD);
    while (llcl_peer_alive(context, get.peer) == LLCL_OK)
        continue;
    EXPECT(llcl_finalize(context) != LLCL_OK);
    EXPECT(strstr(llcl_last_error(), breaks_some ? "MPI_Testsome" : "MPI_Test:") != NULL);
    printf("faults: rank %d was told: %s\n", rank, llcl_last_error());
    __atomic_store_n(&broken, 0, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    EXPECT(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context) == LLCL_ERR_STATE);
    EXPECT(strstr(llcl_last_error(), "MPI is finalised") != NULL);
    return 0;
}
