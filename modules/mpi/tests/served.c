/* While the bytes of a large read are under way, the owner's polling thread naps for SHORT_NS at
 * first, SHORT times and more. The end of the read keeps that thread awake: the reader probably
 * continues. At rank 0 the program replaces MPI_Isend, MPI_Test, MPI_Testsome and ppoll. The end of
 * the message that carries the bytes is hidden until the naps have grown to GROWN_NS. The first nap
 * behind that end must be shorter, in most of READS reads: the progress thread sees the end of some
 * of them, and then the next sleep says little. 2 ranks. */
#include "expect.h"
#include <llcl_mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 20, SHORT_NS = 20000, GROWN_NS = 320000, SHORT = 50, READS = 9, MOST = 600 };
enum { BEFORE, HIDDEN, SHOWN, ENDED, OVER }; /* values of `state`, for the large message */

static int state, naps; /* naps: those of SHORT_NS at most while the end is hidden */
static long next_ns;
static MPI_Request large;
static __thread int polls; /* whether this thread polls MPI */

static int state_now(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

static void become(int next)
{
    __atomic_store_n(&state, next, __ATOMIC_RELEASE);
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Isend(bytes, count, type, to, tag, comm, request);
    if (rank == 0 && count >= BYTES) {
        large = *request;
        become(HIDDEN);
    }
    return code;
}

static int is_large(MPI_Request request)
{
    return state_now() > BEFORE && state_now() < ENDED && request == large;
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    int code, was_large = is_large(*request);
    polls = 1;
    if (was_large && state_now() == HIDDEN) {
        *ended = 0;
        return MPI_SUCCESS;
    }
    code = PMPI_Test(request, ended, status);
    if (was_large && *ended)
        become(ENDED);
    return code;
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    MPI_Request shown[MOST];
    int at, code;
    polls = 1;
    EXPECT(count <= MOST);
    for (at = 0; at < count; at++)
        shown[at] = is_large(requests[at]) && state_now() == HIDDEN ? MPI_REQUEST_NULL : requests[at];
    code = PMPI_Testsome(count, shown, ended, indices, statuses);
    for (at = 0; code == MPI_SUCCESS && at < *ended; at++) {
        if (is_large(requests[indices[at]]))
            become(ENDED);
        requests[indices[at]] = shown[indices[at]];
    }
    return code;
}

/* A nap of the polling thread. */
int ppoll(struct pollfd *waits, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
    struct timespec rest = limit ? *limit : (struct timespec){0, 0};
    long nap_ns = rest.tv_sec * 1000000000L + rest.tv_nsec;
    naps += polls && state_now() == HIDDEN && nap_ns <= SHORT_NS;
    if (polls && state_now() == HIDDEN && nap_ns >= GROWN_NS) {
        become(SHOWN);
    } else if (polls && state_now() == ENDED) {
        next_ns = nap_ns;
        become(OVER);
    }
    return (int)syscall(SYS_ppoll, waits, count, limit ? &rest : NULL, mask, 8);
}

/* Whether the nap behind the end was short. */
static int owner_is_awake(void)
{
    for (int tenths = 0; state_now() != OVER; tenths++) {
        EXPECT(tenths < 200);
        usleep(100000);
    }
    become(BEFORE);
    return next_ns < GROWN_NS;
}

int main(void)
{
    static char bytes[BYTES];
    int awake = 0;
    llcl_region_t *region;
    llcl_remote_t all[2];
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate_shared(context, BYTES, &region, all));
    LLCL_CHECK(llcl_barrier(context));
    get.source = all[0];
    get.destination = llcl_local_address(bytes);
    get.size = BYTES;
    for (int read = 0; read < READS; read++) {
        if (rank == 1)
            LLCL_CHECK(llcl_read(context, &get));
        else
            awake += owner_is_awake();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("served: the owner was awake after %d of %d large reads, %d short naps\n", awake, READS, naps);
        EXPECT(2 * awake > READS && naps > SHORT * READS && naps < 4 * SHORT * READS);
    }
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
