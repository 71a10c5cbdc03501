/* MPI fails while a receive of a large operation is posted. llcl_region_free must not answer
 * LLCL_OK, since MPI may still store there, and the region's memory must stay mapped, also when a
 * later region is freed and when the context has ended. 2 ranks. Rank 1 writes into a region of
 * rank 0, or with an argument rank 0 reads into its own region; the program replaces rank 1's
 * MPI_Isend of the bytes by a request that does not end. Rank 0 frees, or with the argument "end"
 * it leaves that to llcl_finalize; the program replaces its MPI_Test and MPI_Testsome, once the
 * receive is posted, by functions that return an error, and at the end those of rank 1. */
#include "expect.h"
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define MANY (1 << 20)

static int broken, receives;
static char bytes[MANY], nothing;
static llcl_status_t ended = LLCL_RETRY_BUSY;

static void on_end(void *unused, llcl_status_t status)
{
    (void)unused;
    __atomic_store_n(&ended, status, __ATOMIC_RELEASE);
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (count == MANY)
        return PMPI_Irecv(&nothing, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, request);
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Irecv(to, count, type, source, tag, comm, request);
    if (count == MANY)
        __atomic_store_n(&receives, 1, __ATOMIC_RELEASE);
    return code;
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    if (__atomic_load_n(&broken, __ATOMIC_RELAXED))
        return MPI_ERR_OTHER;
    return PMPI_Test(request, ended, status);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    if (__atomic_load_n(&broken, __ATOMIC_RELAXED))
        return MPI_ERR_OTHER;
    return PMPI_Testsome(count, requests, ended, indices, statuses);
}

/* The kernel refuses to read memory that is not mapped. */
static int is_mapped(const char *memory)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    int mapped = write(ends[1], memory, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return mapped;
}

int main(int argc, char **argv)
{
    int ends = argc > 1 && strcmp(argv[1], "end") == 0;
    int reads = ends || (argc > 1 && strcmp(argv[1], "read") == 0);
    llcl_region_t *region, *other;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate(context, MANY, 0, &region));
    LLCL_CHECK(llcl_region_allocate(context, MANY, 0, &other));
    char *memory = llcl_region_address(region), *gone = llcl_region_address(other);
    llcl_remote_t to = llcl_region_remote(region, 0), from = to;
    MPI_Bcast(&to, sizeof to, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&from, sizeof from, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (rank == 0 && reads) {
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.peer = 1;
        get.source = from;
        get.destination = llcl_region_local(region, 0);
        get.size = MANY;
        get.on_complete = llcl_callback(on_end, NULL);
        LLCL_CHECK(llcl_read_async(context, &get));
    }
    if (rank == 1) {
        if (!reads) {
            llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
            put.peer = 0;
            put.source = llcl_local_address(bytes);
            put.destination = to;
            put.size = MANY;
            put.on_complete = llcl_callback(on_end, NULL);
            LLCL_CHECK(llcl_write_async(context, &put));
        }
    } else {
        while (!__atomic_load_n(&receives, __ATOMIC_ACQUIRE))
            sched_yield();
        __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
        while (llcl_peer_alive(context, 1) == LLCL_OK)
            sched_yield();
        while (reads && __atomic_load_n(&ended, __ATOMIC_ACQUIRE) == LLCL_RETRY_BUSY)
            sched_yield();
        if (!ends) {
            EXPECT(llcl_region_free(region) == LLCL_ERR_SYSTEM);
            /* The region has ended, whatever the status says of the wait. */
            EXPECT(llcl_region_address(region) == NULL && llcl_region_size(region) == 0);
            EXPECT(llcl_region_free(region) == LLCL_ERR_STATE);
            EXPECT(is_mapped(memory));
            EXPECT(llcl_region_free(other) == LLCL_OK);
            EXPECT(is_mapped(memory) && !is_mapped(gone));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
    /* The next poll finds the error; llcl_finalize alone may end before one. */
    while (llcl_peer_alive(context, 1 - rank) == LLCL_OK)
        sched_yield();
    EXPECT(llcl_finalize(context) == LLCL_ERR_SYSTEM);
    EXPECT(rank == 1 || (is_mapped(memory) && !is_mapped(gone)));
    EXPECT((rank == 0) != reads || ended == LLCL_ERR_PEER_DEAD);
    printf("deregister: rank %d: passed\n", rank);
    __atomic_store_n(&broken, 0, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
