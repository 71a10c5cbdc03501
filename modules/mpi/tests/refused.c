/* Large writes with the key of a freed region. Their owner refuses them and allocates nothing, so
 * that it does not fail for lack of memory because of a peer's mistake: the memory to which MPI
 * stores the bytes is part of the module. 2 ranks. Rank 1 posts WRITES of them at once. */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>

enum { WRITES = 24, BYTES = 4 << 20 };

static char bytes[BYTES];
static int ended[2]; /* well, and with LLCL_ERR_KEY */

static void on_end(void *unused, llcl_status_t status)
{
    (void)unused;
    EXPECT(status == LLCL_OK || status == LLCL_ERR_KEY);
    __atomic_fetch_add(&ended[status != LLCL_OK], 1, __ATOMIC_RELAXED);
}

/* Receives of large writes, and those whose memory belongs to no program or library. */
static int receives, allocated;

int MPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    Dl_info info;
    if (count == BYTES) {
        __atomic_fetch_add(&receives, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&allocated, dladdr(to, &info) == 0, __ATOMIC_RELAXED);
    }
    return PMPI_Irecv(to, count, type, source, tag, comm, request);
}

int main(void)
{
    int turn, at;
    llcl_region_t *region = NULL;
    llcl_remote_t to;
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_register(context, bytes, BYTES, 0, &region));
    to = llcl_region_remote(region, 0);
    MPI_Bcast(&to, sizeof to, MPI_BYTE, 0, MPI_COMM_WORLD);
    put.peer = 0;
    put.source = llcl_region_local(region, 0);
    put.destination = to;
    put.size = BYTES;
    put.on_complete = llcl_callback(on_end, NULL);
    /* The first writes are accepted, so rank 1 has the key. */
    for (turn = 0; turn < 2; turn++) {
        for (at = 0; rank == 1 && at < WRITES; at++)
            LLCL_CHECK(llcl_write_async(context, &put));
        (void)llcl_flush(context, 0);
        EXPECT(rank == 0 || ended[turn] == WRITES);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && turn == 0)
            LLCL_CHECK(llcl_region_free(region));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("refused: %d of %d receives to memory that was allocated\n", allocated, receives);
    /* Rank 1 forgets the key at the first refusal, so MPI does not carry all the later writes. */
    EXPECT(rank == 1 || (receives > WRITES && allocated == 0));
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
