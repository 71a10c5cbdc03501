/* Large reads whose bytes their readers do not take hold up nobody else's operations. At rank 0,
 * which owns the bytes, the program replaces MPI_Isend, MPI_Test and MPI_Testsome: while `hides` is
 * set, no send of BYTES ends, except to rank 2, as if the other readers were stopped. Each of them
 * begins READS reads, more than rank 0 serves at a time. Then atomics, small and large reads and
 * writes with signal of rank 2 must end. Meanwhile the requests that wait at rank 0 must not keep
 * boxes of receives. 6 ranks.
 */
#include "expect.h"
#include <llcl_mpi.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 << 10, READS = 200, TURNS = 20, SECONDS = 30, MOST = 600, QUIET = 50 };
enum { READER = 2, MOST_RANKS = 16, BOXES = 1000, SPARE = 4 };
enum { WORD = BYTES, SIGNALS = WORD + 8, REGION = SIGNALS + 8 }; /* offsets in the region */

static int hides = 1, sent;
static MPI_Request large[MOST];
/* The different boxes of rank 0's receives from any rank, and how many are posted. */
static void *boxes[BOXES];
static int count_boxes, posted, all_posted;

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int code = PMPI_Isend(bytes, count, type, to, tag, comm, request);
    if (rank == 0 && to != READER && count == BYTES && __atomic_load_n(&hides, __ATOMIC_ACQUIRE)) {
        int at = __atomic_load_n(&sent, __ATOMIC_RELAXED);
        EXPECT(at < MOST);
        large[at] = *request;
        __atomic_store_n(&sent, at + 1, __ATOMIC_RELEASE);
    }
    return code;
}

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (rank == 0 && source == MPI_ANY_SOURCE) {
        int at = 0;
        while (at < count_boxes && boxes[at] != bytes)
            at++;
        EXPECT(at < BOXES);
        boxes[at] = bytes;
        if (at == count_boxes)
            __atomic_store_n(&count_boxes, at + 1, __ATOMIC_RELEASE);
        posted += !all_posted;
    }
    return PMPI_Irecv(bytes, count, type, source, tag, comm, request);
}

static int is_hidden(MPI_Request request)
{
    int at = __atomic_load_n(&hides, __ATOMIC_ACQUIRE) ? __atomic_load_n(&sent, __ATOMIC_ACQUIRE) : 0;
    while (at > 0 && large[at - 1] != request)
        at--;
    return at > 0;
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    all_posted = 1; /* the module posts its receives before it asks for messages */
    *ended = 0;
    return is_hidden(*request) ? MPI_SUCCESS : PMPI_Test(request, ended, status);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    MPI_Request shown[MOST];
    int at, code;
    EXPECT(count <= MOST);
    for (at = 0; at < count; at++)
        shown[at] = is_hidden(requests[at]) ? MPI_REQUEST_NULL : requests[at];
    code = PMPI_Testsome(count, shown, ended, indices, statuses);
    for (at = 0; code == MPI_SUCCESS && at < *ended; at++)
        requests[indices[at]] = shown[indices[at]];
    return code;
}

/* Waits until rank 0 has begun no further send for QUIET ms. */
static void wait_until_full(void)
{
    int before = 0;
    for (int quiet = 0, turn = 0; quiet < QUIET; quiet++, turn++) {
        int now = __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
        if (now != before || now == 0)
            quiet = 0;
        before = now;
        EXPECT(turn < 1000 * SECONDS);
        usleep(1000);
    }
    EXPECT(before < READS);
    printf("behind: %d large reads under way, %d boxes for %d receives\n", before, count_boxes, posted);
    EXPECT(__atomic_load_n(&count_boxes, __ATOMIC_ACQUIRE) <= posted + SPARE);
}

/* Waits for a message of another rank, for a limited time. */
static void hear_from(int other)
{
    const time_t limit = time(NULL) + SECONDS;
    for (int there = 0; !there; usleep(1000)) {
        MPI_Iprobe(other, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        EXPECT(time(NULL) < limit);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tell(int other)
{
    MPI_Send(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

static void small_operations(llcl_context_t *context, llcl_remote_t region)
{
    uint64_t old = 0, word = 0;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_write_signal_params_t put = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    add.target = get.source = put.destination = llcl_at(region, WORD);
    put.signal = llcl_at(region, SIGNALS);
    put.signal_op = LLCL_SIGNAL_ADD;
    put.signal_value = 1;
    add.operand = 5;
    add.result = &old;
    get.destination = put.source = llcl_local_address(&word);
    get.size = put.size = sizeof word;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        LLCL_CHECK(llcl_fetch_add(context, &add));
        EXPECT(old == 6 * turn);
        LLCL_CHECK(llcl_read(context, &get));
        EXPECT(word++ == 6 * turn + 5);
        LLCL_CHECK(llcl_write_signal(context, &put));
    }
}

int main(void)
{
    static char bytes[BYTES];
    llcl_region_t *region;
    llcl_remote_t all[MOST_RANKS];
    uint64_t ended = 0;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate_shared(context, REGION, &region, all));
    LLCL_CHECK(llcl_barrier(context));
    get.source = all[0];
    get.destination = llcl_local_address(bytes);
    get.size = BYTES;
    get.on_complete = llcl_add_on(&ended);
    for (int read = 0; rank != 0 && rank != READER && read < READS; read++)
        LLCL_CHECK(llcl_read_async(context, &get));
    if (rank == 0) {
        wait_until_full();
        tell(READER);
        hear_from(READER);
        __atomic_store_n(&hides, 0, __ATOMIC_RELEASE);
    } else if (rank == READER) {
        hear_from(0);
        small_operations(context, all[0]);
        LLCL_CHECK(llcl_read_async(context, &get));
        LLCL_CHECK(llcl_wait_word(context, &ended, 1, SECONDS * INT64_C(1000000000)));
        tell(0);
    } else {
        LLCL_CHECK(llcl_wait_word(context, &ended, READS, -1));
    }
    LLCL_CHECK(llcl_barrier(context));
    if (rank == 0)
        EXPECT(((uint64_t *)llcl_region_address(region))[SIGNALS / 8] == TURNS);
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
