/* MPI is told only once to cancel a receive: Open MPI crashes in a second MPI_Cancel for a receive
 * that it has not matched. Rank 1 reads many bytes of rank 0, which leaves meanwhile. The program
 * replaces rank 1's receive of the bytes by one that does not end, and counts the calls of
 * MPI_Cancel for it. In the end llcl_finalize takes the receive back.
 *
 * answered: rank 0 answers the read and leaves. The program hides the answer from rank 1 until rank
 * 1 has cancelled the receive because rank 0 has left.
 * refused: rank 0 refuses the read, so rank 1 cancels the receive. Then rank 0 leaves.
 *
 * 2 ranks. */
#include "expect.h"
#include <stdint.h>
#include <string.h>

enum { MANY = 1 << 20 };

static int watches, hidden, sends, cancels;
static char bytes[MANY], nothing;
static MPI_Request stuck = MPI_REQUEST_NULL;

static int is(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(int *flag, int value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (count != MANY)
        return PMPI_Isend(from, count, type, to, tag, comm, request);
    set(&sends, 1);
    return PMPI_Isend(NULL, 0, type, MPI_PROC_NULL, tag, comm, request);
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (count != MANY)
        return PMPI_Irecv(to, count, type, source, tag, comm, request);
    PMPI_Irecv(&nothing, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, &stuck);
    *request = stuck;
    set(&hidden, is(&watches));
    return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request)
{
    if (*request != stuck)
        return PMPI_Cancel(request);
    __atomic_add_fetch(&cancels, 1, __ATOMIC_RELAXED);
    set(&hidden, 0);
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    *ended = 0;
    return is(&hidden) ? MPI_SUCCESS : PMPI_Test(request, ended, status);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    *ended = 0;
    return is(&hidden) ? MPI_SUCCESS : PMPI_Testsome(count, requests, ended, indices, statuses);
}

int main(int argc, char **argv)
{
    int refused = argc > 1 && strcmp(argv[1], "refused") == 0, seen = 0;
    uint64_t ended = 0;
    llcl_region_t *region;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate(context, MANY, 0, &region));
    llcl_remote_t source = llcl_region_remote(region, 0);
    MPI_Bcast(&source, sizeof source, MPI_BYTE, 0, MPI_COMM_WORLD);
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    get.peer = 0;
    get.source = source;
    get.destination = llcl_local_address(bytes);
    get.size = 8;
    if (rank == 1)
        LLCL_CHECK(llcl_read(context, &get));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && refused)
        LLCL_CHECK(llcl_region_free(region));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        set(&watches, !refused);
        get.size = MANY;
        get.on_complete = llcl_store_on(&ended);
        LLCL_CHECK(llcl_read_async(context, &get));
        for (int tenths = 0; refused && !is(&cancels); tenths++) {
            EXPECT(tenths < 100);
            usleep(100000);
        }
        seen = 1;
        PMPI_Send(&seen, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        EXPECT(llcl_wait_word(context, &ended, 1, 20000000000) == LLCL_OK);
        EXPECT(is(&cancels) == 1);
    } else {
        PMPI_Recv(&seen, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tenths = 0; !refused && !is(&sends); tenths++) {
            EXPECT(tenths < 100);
            usleep(100000);
        }
    }
    /* Rank 0 leaves without waiting for rank 1. */
    llcl_finalize_within(context, rank == 0 ? 1 : 20000000000);
    if (rank == 1) {
        EXPECT(is(&cancels) == 1);
        PMPI_Cancel(&stuck);
        PMPI_Wait(&stuck, MPI_STATUS_IGNORE);
    }
    printf("cancelled: rank %d: passed\n", rank);
    end_mpi();
    return 0;
}
