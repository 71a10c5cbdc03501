/* MPI reports the death of rank 3 itself, as Open MPI 5 does under mpirun --with-ft ulfm. The
 * program replaces functions of MPI by ones that behave so at the living ranks:
 *
 * - A send to rank 3 returns an error. Rank 0 hears of the death so.
 * - Testing a receive from any rank returns an error until the death is acknowledged. Rank 1 hears
 *   of the death so.
 * - Then it returns that error once more with each of the next messages, and does not free the
 *   receive.
 * - MPI_Testsome frees a receive from rank 3, and returns an error that does not name the receive.
 *   Rank 2, which reads many bytes of rank 3, hears of the death so.
 *
 * The living must go on with each other, and must be told that rank 3 is dead. 4 ranks. */
#include "expect.h"
#include <llcl_mpi.h>

enum { LIVING = 3, LARGE = 1 << 16, STALE = 500, ROUNDS = 1000 };

static int dead, unreachable, acknowledged, pending, stale, refused, unnamed;
/* The receive from rank 3 that rank 2 has begun. It does not end. */
static MPI_Request stuck = MPI_REQUEST_NULL;

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
    *ended = 0;
    for (int i = 0; i < count; i++)
        if (stuck != MPI_REQUEST_NULL && requests[i] == stuck) {
            __atomic_add_fetch(&unnamed, 1, __ATOMIC_RELAXED);
            stuck = requests[i] = MPI_REQUEST_NULL;
            return MPI_ERR_IN_STATUS;
        }
    if (!is(&dead) || !is(&acknowledged) || is(&stale) >= STALE)
        return PMPI_Testsome(count, requests, ended, indices, statuses);
    for (int i = 0; i < count; i++) {
        int has_ended;
        PMPI_Request_get_status(requests[i], &has_ended, &statuses[*ended]);
        if (has_ended) {
            statuses[*ended].MPI_ERROR = MPI_ERR_OTHER;
            indices[(*ended)++] = i;
        }
    }
    return *ended ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is(&unreachable) && to == LIVING && rank == 2)
        return PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, tag, comm, request);
    if (is(&unreachable) && to == LIVING) {
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
        return MPI_ERR_OTHER;
    }
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (!is(&unreachable) || from != LIVING || rank != 2)
        return PMPI_Irecv(bytes, count, type, from, tag, comm, request);
    /* Nobody sends this to itself. */
    PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &stuck);
    *request = stuck;
    return MPI_SUCCESS;
}

int MPIX_Comm_failure_ack(MPI_Comm comm)
{
    (void)comm;
    __atomic_store_n(&acknowledged, is(&dead), __ATOMIC_RELAXED);
    return MPI_SUCCESS;
}

int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *group)
{
    const int last = LIVING;
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, is(&dead) || is(&unreachable), &last, group);
    return MPI_Group_free(&all);
}

/* Reading from rank 3 ends with a status. */
static void read_from_dead(llcl_context_t *context, llcl_read_params_t get, llcl_remote_t source)
{
    double begun = MPI_Wtime();
    __atomic_store_n(&unreachable, 1, __ATOMIC_RELAXED);
    get.peer = LIVING;
    get.source = source;
    get.size = rank == 2 ? LARGE : 8;
    EXPECT(llcl_read(context, &get) == LLCL_ERR_PEER_DEAD);
    EXPECT(MPI_Wtime() - begun < 5);
    /* A read may end shortly before the context knows of the death. */
    while (llcl_peer_alive(context, LIVING) == LLCL_OK && MPI_Wtime() - begun < 5)
        LLCL_CHECK(llcl_progress(context));
    EXPECT(llcl_peer_alive(context, LIVING) == LLCL_ERR_PEER_DEAD);
}

int main(void)
{
    llcl_region_t *region;
    llcl_remote_t all[LIVING + 1];
    static uint64_t words[LARGE / 8];
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate_shared(context, LARGE, &region, all));
    *(uint64_t *)llcl_region_address(region) = (uint64_t)rank + 1;
    get.destination = llcl_local_address(words);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The first read also asks rank 3 for what the next reads need. */
    get.peer = LIVING;
    get.source = all[LIVING];
    get.size = LARGE;
    EXPECT(llcl_read(context, &get) == LLCL_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < LIVING) {
        uint32_t next = (uint32_t)(rank + 1) % LIVING;
        if (rank != 1)
            read_from_dead(context, get, all[LIVING]);
        EXPECT(rank != 0 || is(&refused));
        EXPECT(rank != 2 || is(&unnamed) == 1);
        __atomic_store_n(&dead, 1, __ATOMIC_RELAXED);
        for (int round = 0; round < ROUNDS; round++) {
            get.peer = next;
            get.source = all[next];
            get.size = 8;
            words[0] = 0;
            EXPECT(llcl_read(context, &get) == LLCL_OK);
            EXPECT(words[0] == next + 1);
        }
        EXPECT((rank != 1 || is(&pending)) && is(&stale) >= STALE);
        read_from_dead(context, get, all[LIVING]);
        EXPECT(llcl_peer_alive(context, next) == LLCL_OK);
        printf("deaths: rank %d goes on\n", rank);
    }
    __atomic_store_n(&dead, 0, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    llcl_finalize(context);
    MPI_Finalize();
    return 0;
}
