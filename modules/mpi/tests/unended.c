/* What MPI never ends of a rank that has left, or died, does not hold up the other ranks. 3 ranks;
 * rank 2 leaves. The program replaces functions of MPI at rank 0.
 *
 * writes: rank 2 writes many bytes to rank 0 again and again. Rank 0's receives of them do not end,
 * not even when they are cancelled, as if MPI had matched them. Nor do its sends to rank 1, which
 * then reads READS times. That is more than rank 1's share of the places for large operations at
 * rank 0 while rank 2 has its own, but those of a rank that has left for long are free.
 * frames: rank 0 sends messages to rank 2, and MPI does not end the sends. There is a limit on the
 * sends under way, but those to a rank that has left for long do not count.
 *
 * Then the receives, or the sends, end nevertheless, and rank 0 goes on as before. */
#include "expect.h"
#include <stdint.h>
#include <string.h>

/* SHARE: of one rank, of the module's places at the owner. READS: the module leaves 16 for a second
 * rank. FRAMES: its limit for frames with the tag USER. PAYLOAD: of a message that
 * needs such a frame. MOST: of requests that do not end. */
enum { BYTES = 8192, SHARE = 32, READS = 20, FRAMES = 192, USER = 2, PAYLOAD = 4000 };
enum { ID = 5, GONE = 2, MOST = 1024 };

static int watches, holds, stuck_count, handled;
static MPI_Request stuck[MOST];
static char bytes[BYTES], nothing, empty[MOST];

static int is(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* A request that end_stuck() ends. One thread at a time calls it: the module has a lock. */
static int make_stuck(MPI_Request *request)
{
    EXPECT(stuck_count < MOST);
    PMPI_Irecv(&empty[stuck_count], 1, MPI_BYTE, 0, 1, MPI_COMM_SELF, request);
    stuck[stuck_count] = *request;
    __atomic_store_n(&stuck_count, stuck_count + 1, __ATOMIC_RELEASE);
    return MPI_SUCCESS;
}

static void end_stuck(void)
{
    for (int at = 0; at < stuck_count; at++)
        PMPI_Send(&nothing, 1, MPI_BYTE, 0, 1, MPI_COMM_SELF);
    sleep(1);
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int end;
    if (rank == GONE && count == BYTES)
        return PMPI_Isend(NULL, 0, type, MPI_PROC_NULL, tag, comm, request);
    if (rank != 0 || !(to == GONE ? tag == USER && is(&watches) : count == BYTES && is(&holds)))
        return PMPI_Isend(from, count, type, to, tag, comm, request);
    end = PMPI_Isend(from, count, type, to, tag, comm, request);
    PMPI_Request_free(request);
    make_stuck(request);
    return end;
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (rank != 0 || source != GONE)
        return PMPI_Irecv(to, count, type, source, tag, comm, request);
    return make_stuck(request);
}

int MPI_Cancel(MPI_Request *request)
{
    for (int at = 0; at < stuck_count; at++)
        if (stuck[at] == *request)
            return MPI_SUCCESS;
    return PMPI_Cancel(request);
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

/* Sends a message. Returns whether there was room for it soon. */
static int sends(llcl_context_t *context, uint32_t peer)
{
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    double begun = MPI_Wtime();
    message.peer = peer;
    message.id = ID;
    message.payload = bytes;
    message.payload_size = PAYLOAD;
    while (llcl_try_am_async(context, &message) != LLCL_OK) {
        if (MPI_Wtime() - begun > 2)
            return 0;
        LLCL_CHECK(llcl_progress(context));
    }
    return 1;
}

/* Rank 0 leaves no room for the others, as long as rank 2 is there. */
static void fill(llcl_context_t *context, int frames, llcl_remote_t to)
{
    static uint64_t ended;
    double begun = MPI_Wtime();
    int done = 0;
    if (rank == GONE && !frames) {
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        put.peer = 0;
        put.source = llcl_local_address(bytes);
        put.destination = to;
        put.size = BYTES;
        put.on_complete = llcl_add_on(&ended);
        for (int write = 0; write < 3 * SHARE; write++)
            LLCL_CHECK(llcl_write_async(context, &put));
    }
    while (rank == 0 && is(&stuck_count) < (frames ? FRAMES : SHARE)) {
        EXPECT(MPI_Wtime() - begun < 20);
        if (frames)
            sends(context, GONE);
        LLCL_CHECK(llcl_progress(context));
    }
    if (rank == 0)
        PMPI_Send(&done, 1, MPI_INT, GONE, 0, MPI_COMM_WORLD);
    for (int ended = 0; rank == GONE && !ended; usleep(1000)) {
        PMPI_Iprobe(0, 0, MPI_COMM_WORLD, &ended, MPI_STATUS_IGNORE);
        LLCL_CHECK(llcl_progress(context));
    }
    if (rank == GONE)
        PMPI_Recv(&done, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 reads so often from rank 0, and rank 0 sends messages to rank 1. */
static void go_on(llcl_context_t *context, llcl_remote_t from, int messages, int reads)
{
    uint64_t ended = 0;
    double begun = MPI_Wtime();
    if (rank == 1) {
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.peer = 0;
        get.source = from;
        get.destination = llcl_local_address(bytes);
        get.size = BYTES;
        get.on_complete = llcl_add_on(&ended);
        for (int read = 0; read < reads; read++) {
            LLCL_CHECK(llcl_read_async(context, &get));
            usleep(20000); /* each is a request of its own */
        }
        EXPECT(llcl_wait_word(context, &ended, (uint64_t)reads, 10000000000) == LLCL_OK);
        EXPECT(ended == (uint64_t)reads);
        while (is(&handled) < messages) {
            EXPECT(MPI_Wtime() - begun < 20);
            LLCL_CHECK(llcl_progress(context));
        }
        PMPI_Send(&messages, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else {
        int seen = 0;
        for (int message = 0; message < 2; message++)
            EXPECT(sends(context, 1));
        for (; !seen; usleep(1000)) {
            PMPI_Iprobe(1, 0, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
            LLCL_CHECK(llcl_progress(context));
        }
        PMPI_Recv(&messages, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int frames = argc > 1 && strcmp(argv[1], "frames") == 0;
    llcl_region_t *region;
    llcl_remote_t all[3];
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_am_register(context, ID, handle, NULL));
    LLCL_CHECK(llcl_region_allocate_shared(context, BYTES, &region, all));
    LLCL_CHECK(llcl_barrier(context));
    __atomic_store_n(&watches, frames, __ATOMIC_RELEASE);
    fill(context, frames, all[0]);
    if (rank == GONE) {
        llcl_finalize_within(context, 1);
    } else {
        while (llcl_peer_alive(context, GONE) == LLCL_OK)
            LLCL_CHECK(llcl_progress(context));
        /* The module waits a second for MPI to end what is under way. */
        sleep(2);
        __atomic_store_n(&holds, !frames, __ATOMIC_RELEASE);
        go_on(context, all[0], 2, frames ? 1 : READS);
        __atomic_store_n(&holds, 0, __ATOMIC_RELEASE);
        if (rank == 0)
            end_stuck();
        go_on(context, all[0], 4, 1);
        LLCL_CHECK(llcl_region_free(region));
        llcl_finalize(context);
    }
    printf("unended: rank %d: passed, %d requests without end\n", rank, stuck_count);
    end_mpi();
    return 0;
}
