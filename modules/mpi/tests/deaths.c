/* MPI reports the death of rank 2 itself, as Open MPI 5 does under mpirun --with-ft ulfm. The
 * program replaces functions of MPI by ones that behave so at ranks 0 and 1:
 *
 * - A send to rank 2 returns an error.
 * - Testing a receive from any rank returns an error until the death is acknowledged.
 * - Then it returns that error once more with each of the next messages, and does not free the
 *   receive.
 *
 * Rank 0 hears of the death by a send, rank 1 by a receive. They must go on with each other, and
 * must be told that rank 2 is dead. 3 ranks. */
#include "expect.h"
#include <llcl_mpi.h>

enum { STALE = 500, ROUNDS = 1000 };

static int dead, unreachable, acknowledged, pending, stale, refused;

static int is(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    if (is(&dead) && !is(&acknowledged)) {
        __atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
        *ended = 0;
        return MPI_ERR_OTHER;
    }
    if (is(&dead) && is(&stale) < STALE) {
        int code = PMPI_Request_get_status(*request, ended, status);
        if (code != MPI_SUCCESS || !*ended)
            return code;
        __atomic_add_fetch(&stale, 1, __ATOMIC_RELAXED);
        return MPI_ERR_OTHER;
    }
    return PMPI_Test(request, ended, status);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    if (is(&dead) && !is(&acknowledged)) {
        *ended = 1;
        indices[0] = 0;
        statuses[0].MPI_ERROR = MPI_ERR_OTHER;
        return MPI_ERR_IN_STATUS;
    }
    return PMPI_Testsome(count, requests, ended, indices, statuses);
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is(&unreachable) && to == 2) {
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
        return MPI_ERR_OTHER;
    }
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPIX_Comm_failure_ack(MPI_Comm comm)
{
    (void)comm;
    __atomic_store_n(&acknowledged, is(&dead), __ATOMIC_RELAXED);
    return MPI_SUCCESS;
}

int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *group)
{
    const int rank2 = 2;
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, is(&dead) || is(&unreachable), &rank2, group);
    return MPI_Group_free(&all);
}

/* Reading from rank 2 ends with a status. */
static void read_from_dead(llcl_context_t *context, llcl_read_params_t get, llcl_remote_t source)
{
    double begun = MPI_Wtime();
    __atomic_store_n(&unreachable, 1, __ATOMIC_RELAXED);
    get.peer = 2;
    get.source = source;
    EXPECT(llcl_read(context, &get) == LLCL_ERR_PEER_DEAD);
    EXPECT(MPI_Wtime() - begun < 5);
    EXPECT(llcl_peer_alive(context, 2) == LLCL_ERR_PEER_DEAD);
}

int main(int argc, char **argv)
{
    int level;
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t all[3];
    uint64_t word = 0;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, all));
    *(uint64_t *)llcl_region_address(region) = (uint64_t)rank + 1;
    get.destination = llcl_local_address(&word);
    get.size = 8;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        if (rank == 0) {
            read_from_dead(context, get, all[2]);
            EXPECT(is(&refused) > 0);
        }
        __atomic_store_n(&dead, 1, __ATOMIC_RELAXED);
        for (int round = 0; round < ROUNDS; round++) {
            get.peer = (uint32_t)(1 - rank);
            get.source = all[get.peer];
            word = 0;
            EXPECT(llcl_read(context, &get) == LLCL_OK);
            EXPECT(word == get.peer + 1);
        }
        EXPECT(is(&pending) > 0 && is(&stale) == STALE);
        read_from_dead(context, get, all[2]);
        EXPECT(llcl_peer_alive(context, (uint32_t)(1 - rank)) == LLCL_OK);
        printf("deaths: rank %d goes on\n", rank);
    }
    __atomic_store_n(&dead, 0, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    llcl_finalize(context);
    MPI_Finalize();
    return 0;
}
