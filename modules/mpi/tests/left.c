/* When all ranks have ended their contexts, each message that the module has sent was received: a
 * message to a rank that has closed the wire would stay in MPI, where UCX complains of it in
 * MPI_Finalize. The program counts the messages in functions of MPI. Arguments: the level of
 * threads, and for how many milliseconds each message of rank 0 that tells what the hubs agree on
 * is held back at the end, since most ranks close the wire before rank 0 does. */
#include "expect.h"
#include <llcl_mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 6, RANKS = 8, PENDING = 4096, CLASS_ANSWER = 0 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The module's communicators, and its receives that MPI has not ended. */
static MPI_Comm own = MPI_COMM_NULL, large = MPI_COMM_NULL;
static MPI_Request pending[PENDING];
static int receives;
/* Messages to and from each rank. */
static long sent[RANKS], came[RANKS];
static int late_ms, ending;

int MPI_Comm_split(MPI_Comm of, int colour, int key, MPI_Comm *made)
{
    int code = PMPI_Comm_split(of, colour, key, made);
    own = *made;
    return code;
}

int MPI_Comm_dup(MPI_Comm of, MPI_Comm *made)
{
    int code = PMPI_Comm_dup(of, made);
    if (own != MPI_COMM_NULL && of == own)
        large = *made;
    return code;
}

/* Whether it is one of the module's communicators. */
static int is_own(MPI_Comm comm)
{
    return comm == own || comm == large;
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (is_own(comm)) {
        if (rank == 0 && tag == CLASS_ANSWER && __atomic_load_n(&ending, __ATOMIC_RELAXED))
            usleep((useconds_t)late_ms * 1000);
        pthread_mutex_lock(&lock);
        sent[to]++;
        pthread_mutex_unlock(&lock);
    }
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    pthread_mutex_lock(&lock);
    int code = PMPI_Irecv(to, count, type, from, tag, comm, request);
    if (is_own(comm)) {
        EXPECT(receives < PENDING);
        pending[receives++] = *request;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* MPI has ended a request, which is counted if it is a receive of the module. */
static void count(MPI_Request request, const MPI_Status *status)
{
    int cancelled = 0;
    for (int i = 0; i < receives; i++)
        if (pending[i] == request) {
            pending[i] = pending[--receives];
            PMPI_Test_cancelled(status, &cancelled);
            came[status->MPI_SOURCE] += !cancelled;
            return;
        }
}

/* Under the lock: another thread may begin a request with the handle of one that has ended. */
int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    MPI_Request before = *request;
    MPI_Status unasked;
    if (status == MPI_STATUS_IGNORE)
        status = &unasked;
    pthread_mutex_lock(&lock);
    int code = PMPI_Test(request, ended, status);
    if (code == MPI_SUCCESS && *ended)
        count(before, status);
    pthread_mutex_unlock(&lock);
    return code;
}

int MPI_Testsome(int requests, MPI_Request *handles, int *ended, int *indices, MPI_Status *statuses)
{
    MPI_Request before[PENDING];
    EXPECT(requests <= PENDING);
    memcpy(before, handles, (size_t)requests * sizeof *before);
    pthread_mutex_lock(&lock);
    int code = PMPI_Testsome(requests, handles, ended, indices, statuses);
    for (int i = 0; code == MPI_SUCCESS && i < *ended; i++)
        count(before[indices[i]], &statuses[i]);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Each rank adds to a word of each rank. */
static void use(llcl_context_t *context, int size)
{
    llcl_region_t *region;
    llcl_remote_t all[RANKS];
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, all));
    for (int peer = 0; peer < size; peer++) {
        llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
        add.peer = (uint32_t)peer;
        add.target = all[peer];
        add.operand = 1;
        LLCL_CHECK(llcl_fetch_add(context, &add));
    }
    LLCL_CHECK(llcl_barrier(context));
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int funneled = argc > 1 && strcmp(argv[1], "funneled") == 0, size;
    double longest = 0;
    long expected[RANKS];
    llcl_context_t *context = start(funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size <= RANKS);
    late_ms = argc > 2 ? atoi(argv[2]) : 0;
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn > 0)
            LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
        use(context, size);
        __atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
        double began = now_ms();
        LLCL_CHECK(llcl_finalize(context));
        double took = now_ms() - began;
        longest = took > longest ? took : longest;
        __atomic_store_n(&ending, 0, __ATOMIC_RELAXED);
        MPI_Alltoall(sent, 1, MPI_LONG, expected, 1, MPI_LONG, MPI_COMM_WORLD);
        for (int peer = 0; peer < size; peer++) {
            if (came[peer] != expected[peer])
                fprintf(stderr, "left: rank %d has received %ld of %ld messages of rank %d\n", rank, came[peer], expected[peer], peer);
            EXPECT(came[peer] == expected[peer]);
        }
        /* The next context has communicators with other handles, or the same. */
        EXPECT(receives == 0);
    }
    printf("left: rank %d: llcl_finalize took at most %.1f ms\n", rank, longest);
    end_mpi();
    return 0;
}
