/* MPI sends the longest frame of the module without asking the receiver first. Rank 0 sends a
 * message that takes several frames; the program sees the longest of them in MPI_Isend, and sends
 * as many bytes itself. That send must end though the receiver does not receive it. The argument is
 * the least size of that frame: shorter ones would make messages slower. 2 ranks. */
#include "expect.h"
#include <llcl_mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 64 << 10, HANDLER = 5, TAG = 77, CLASSES = 7, MS = 3000 };

static int longest;
static char bytes[BYTES];

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int before = __atomic_load_n(&longest, __ATOMIC_RELAXED);
    while (tag <= CLASSES && before < count &&
           !__atomic_compare_exchange_n(&longest, &before, count, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
}

int main(int argc, char **argv)
{
    int ended = 0, size, least = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Request request;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_am_register(context, HANDLER, handle, NULL));
    LLCL_CHECK(llcl_barrier(context));
    if (rank == 0) {
        llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
        message.peer = 1;
        message.id = HANDLER;
        message.payload = bytes;
        message.payload_size = BYTES;
        LLCL_CHECK(llcl_am(context, &message));
        size = __atomic_load_n(&longest, __ATOMIC_RELAXED);
        printf("eager: the longest frame has %d bytes\n", size);
        EXPECT(least > 0 && size >= least && size < BYTES);
        PMPI_Isend(bytes, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        for (int ms = 0; ms < MS && !ended; ms++) {
            PMPI_Test(&request, &ended, MPI_STATUS_IGNORE);
            usleep(1000);
        }
        EXPECT(ended);
    }
    LLCL_CHECK(llcl_barrier(context));
    if (rank == 1)
        MPI_Recv(bytes, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    LLCL_CHECK(llcl_finalize(context));
    end_mpi();
    return 0;
}
