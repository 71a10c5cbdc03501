/* Frames whose bytes stay under way do not hide the messages behind them. At rank 0 the program
 * replaces MPI_Test and MPI_Testsome: a frame of class USER does not end while `hides` is set. Rank
 * 1 sends FRAMES messages, of which no two fit into one frame. When as many of them as the argument
 * says are hidden, reads of rank 0 must end; at the end all frames arrive. Knocks are hidden until
 * rank 1 may send no more, so that one of them asks for as many frames as may be granted: a hidden
 * frame carries the next knock. The second argument is the size of a message: one fits into a frame
 * of the wire, and two do not. 2 ranks. */
#include "expect.h"
#include <llcl_mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLER = 3, MOST_BYTES = 32768, FRAMES = 64, RECEIVES = 128, MOST = 600 };
enum { USER = 2, RMA, KNOCKS = 6 }; /* classes of llcl_wire.h, which are the tags; knocks follow RMA */

static int hides, hides_knocks, hidden, handled;
static size_t message_size;
/* The receives for any rank, whose messages may be hidden. */
static MPI_Request receives[RECEIVES];

static MPI_Request *receive_of(MPI_Request request)
{
    int at = 0;
    while (at < RECEIVES && receives[at] != request)
        at++;
    EXPECT(at < RECEIVES || request != MPI_REQUEST_NULL); /* there is room for one more */
    return at < RECEIVES ? &receives[at] : NULL;
}

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Irecv(bytes, count, type, source, tag, comm, request);
    if (rank == 0 && source == MPI_ANY_SOURCE && code == MPI_SUCCESS)
        *receive_of(MPI_REQUEST_NULL) = *request;
    return code;
}

/* Whether the library does not see a receive yet. One that has not ended stays unseen, too: its
 * frame may come between this look and PMPI_Testsome, and would not be hidden. */
static int is_unseen(MPI_Request request, int *hidden_frames)
{
    int ended = 0, hide;
    MPI_Status status;
    if (!__atomic_load_n(&hides, __ATOMIC_RELAXED) || request == MPI_REQUEST_NULL || !receive_of(request))
        return 0;
    PMPI_Request_get_status(request, &ended, &status);
    hide = ended && (status.MPI_TAG == USER || (status.MPI_TAG > RMA && status.MPI_TAG <= KNOCKS &&
                                                __atomic_load_n(&hides_knocks, __ATOMIC_RELAXED)));
    *hidden_frames += hide;
    return hide || !ended;
}

/* A request has ended unless `after` equals it. */
static void forget(MPI_Request request, MPI_Request after)
{
    MPI_Request *receive = after == request ? NULL : receive_of(request);
    if (receive)
        *receive = MPI_REQUEST_NULL;
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    MPI_Request before = *request;
    int code = MPI_SUCCESS, hidden_frames = 0;
    *ended = 0;
    if (!is_unseen(before, &hidden_frames))
        code = PMPI_Test(request, ended, status);
    if (rank == 0 && before != MPI_REQUEST_NULL)
        forget(before, *request);
    return code;
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    MPI_Request shown[MOST];
    int at, code, now = 0;
    EXPECT(count <= MOST);
    for (at = 0; at < count; at++)
        shown[at] = is_unseen(requests[at], &now) ? MPI_REQUEST_NULL : requests[at];
    if (now > hidden)
        __atomic_store_n(&hidden, now, __ATOMIC_RELAXED);
    code = PMPI_Testsome(count, shown, ended, indices, statuses);
    for (at = 0; code == MPI_SUCCESS && at < *ended; at++) {
        if (rank == 0)
            forget(requests[indices[at]], shown[indices[at]]);
        requests[indices[at]] = shown[indices[at]];
    }
    return code;
}

static void handle(llcl_am_t *message, void *data)
{
    llcl_am_view_t view;
    (void)data;
    LLCL_CHECK(llcl_am_view(message, &view));
    __atomic_fetch_add(&handled, view.payload_size == message_size, __ATOMIC_RELEASE);
}

static void send_to_0(llcl_context_t *context)
{
    static char payload[MOST_BYTES];
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    int at = 0;
    message.id = HANDLER;
    message.payload = payload;
    message.payload_size = 8; /* comes in a knock, which asks for no frame */
    LLCL_CHECK(llcl_am_async(context, &message));
    message.payload_size = message_size;
    while (at < FRAMES && llcl_try_am_async(context, &message) == LLCL_OK)
        at++;
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    for (; at < FRAMES; at++)
        LLCL_CHECK(llcl_am_async(context, &message));
    LLCL_CHECK(llcl_flush(context, 0));
}

/* Waits until so many frames are hidden at the same time, and then reads. */
static void read_from_1(llcl_context_t *context, llcl_remote_t source, int wanted)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    __atomic_store_n(&hides_knocks, 0, __ATOMIC_RELAXED);
    while (__atomic_load_n(&hidden, __ATOMIC_RELAXED) < wanted)
        LLCL_CHECK(llcl_progress(context));
    for (int turn = 0; turn < 100; turn++) {
        uint64_t word = 0;
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.peer = 1;
        get.source = source;
        get.destination = llcl_local_address(&word);
        get.size = 8;
        LLCL_CHECK(llcl_read(context, &get));
        EXPECT(word == 77);
    }
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 0;
    llcl_region_t *region;
    llcl_remote_t all[2];
    message_size = argc > 2 ? (size_t)atoi(argv[2]) : 4080;
    EXPECT(message_size <= MOST_BYTES);
    for (int at = 0; at < RECEIVES; at++)
        receives[at] = MPI_REQUEST_NULL;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_am_register(context, HANDLER, handle, NULL));
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, all));
    *(uint64_t *)llcl_region_address(region) = 77;
    MPI_Barrier(MPI_COMM_WORLD);
    __atomic_store_n(&hides_knocks, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&hides, rank == 0, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        send_to_0(context);
    } else {
        read_from_1(context, all[1], wanted);
        __atomic_store_n(&hides, 0, __ATOMIC_RELAXED);
        while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) < FRAMES)
            LLCL_CHECK(llcl_progress(context));
    }
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    if (rank == 0)
        printf("overtaken: %d hidden frames passed\n", wanted);
    return 0;
}
