/* A rank leaves by llcl_finalize_within while MPI still uses its memory for a rank that is stopped
 * in the middle of a transfer. MPI may store the bytes when that rank goes on. 2 ranks; rank 1 is
 * the one that stops. The argument says what it does:
 * region: rank 0 reads into an allocated region, which must stay mapped;
 * written: rank 0 writes from allocated regions, of which the last must stay mapped;
 * registered: rank 1 writes into registered memory of rank 0, which llcl_finalize_within must name;
 * served: rank 1 reads several regions of rank 0. The end does not wait for each of them alone;
 * callback: the same, and rank 0 frees one of them inside a callback, which does not wait. */
#include "expect.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MANY = 4 << 20, REGIONS = 4, LEAVE_NS = 500000000, LONGEST = 6, SMALL_REQUEST = 4096, REQUESTS = 3 };

static const char *what;
static int stops, pid_of_1;
static char bytes[REGIONS][MANY];

static llcl_region_t *region[REGIONS];
static int freed;

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Rank 1 stops when it has begun to send the bytes of a read, or has sent the request behind those
 * of a write. At "served" rank 0 stops it when it begins to send. */
int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (stops && rank == 0 && count == MANY) {
        stops = 0;
        EXPECT(kill(pid_of_1, SIGSTOP) == 0);
    }
    int code = PMPI_Isend(from, count, type, to, tag, comm, request);
    int last = is("registered") ? count < SMALL_REQUEST && tag == REQUESTS : count == MANY;
    if (stops && rank == 1 && last) {
        stops = 0;
        raise(SIGSTOP);
    }
    return code;
}

/* At "written" rank 1 stops when it has begun to receive all bytes. */
int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    static int begun;
    int code = PMPI_Irecv(to, count, type, from, tag, comm, request);
    if (stops && is("written") && count == MANY && ++begun == REGIONS) {
        stops = 0;
        raise(SIGSTOP);
    }
    return code;
}

static int is_read_by_1(void)
{
    return is("served") || is("callback");
}

static void free_one(void *unused, llcl_status_t status)
{
    double begun = now();
    (void)unused;
    LLCL_CHECK(status);
    status = llcl_region_free(region[1]);
    double took = now() - begun;
    printf("kept: free inside a callback: status %d after %.2f s\n", status, took);
    EXPECT(took < 1);
    EXPECT(status == LLCL_ERR_SYSTEM || status == LLCL_RETRY_BUSY);
    __atomic_store_n(&freed, 1, __ATOMIC_RELEASE);
}

/* Calls free_one() inside a callback. */
static void free_in_callback(llcl_context_t *context)
{
    static uint64_t word;
    llcl_region_t *own;
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    LLCL_CHECK(llcl_region_allocate(context, 64, 0, &own));
    put.peer = 0;
    put.size = sizeof word;
    put.source = llcl_local_address(&word);
    put.destination = llcl_region_remote(own, 0);
    put.on_complete = llcl_callback(free_one, NULL);
    LLCL_CHECK(llcl_write_async(context, &put));
    while (!__atomic_load_n(&freed, __ATOMIC_ACQUIRE))
        llcl_progress(context);
}

/* What rank 1 begins, and stops in. */
static void begin(llcl_context_t *context, const llcl_remote_t *of_0)
{
    if (is("registered")) {
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        put.source = llcl_local_address(bytes[0]);
        put.destination = of_0[0];
        put.size = MANY;
        LLCL_CHECK(llcl_write_async(context, &put));
    }
    for (int at = 0; is_read_by_1() && at < REGIONS; at++) {
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.source = of_0[at];
        get.destination = llcl_local_address(bytes[at]);
        get.size = MANY;
        LLCL_CHECK(llcl_read_async(context, &get));
    }
}

/* Rank 0 leaves, and uses the memory anew. Returns whether it may. */
static int leave(llcl_context_t *context, char *memory)
{
    char address[32];
    double begun = now();
    llcl_status_t status = llcl_finalize_within(context, LEAVE_NS);
    double took = now() - begun;
    int names = snprintf(address, sizeof address, "%#lx", (unsigned long)memory) > 0 && status == LLCL_ERR_SYSTEM &&
                strstr(llcl_last_error(), address) != NULL;
    printf("kept: %s: status %d after %.1f s: %s\n", what, status, took, llcl_last_error());
    EXPECT(took < LONGEST);
    EXPECT(names || status == LLCL_ERR_TIMEOUT);
#ifdef OPEN_MPI
    EXPECT(names || !is("registered"));
#endif
    if (!is("region") && !is("written"))
        return !names;
    EXPECT(status == LLCL_ERR_TIMEOUT);
    return mmap(memory, MANY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == memory;
}

int main(int argc, char **argv)
{
    llcl_remote_t of_0[REGIONS], of_1;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    what = argc > 1 ? argv[1] : "region";
    llcl_context_t *context = start(MPI_THREAD_MULTIPLE);
    for (int at = 0; at < REGIONS; at++) {
        if (is("registered"))
            LLCL_CHECK(llcl_region_register(context, bytes[at], MANY, 0, &region[at]));
        else
            LLCL_CHECK(llcl_region_allocate(context, MANY, 0, &region[at]));
        of_0[at] = llcl_region_remote(region[at], 0);
    }
    of_1 = of_0[0];
    MPI_Bcast(of_0, sizeof of_0, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&of_1, sizeof of_1, MPI_BYTE, 1, MPI_COMM_WORLD);
    pid_of_1 = getpid();
    MPI_Bcast(&pid_of_1, 1, MPI_INT, 1, MPI_COMM_WORLD);
    /* The first use of a region asks its owner. */
    get.peer = 1 - (uint32_t)rank;
    get.size = 8;
    get.destination = llcl_local_address(bytes[1]);
    for (int at = 0; at < (rank == 0 ? 1 : REGIONS); at++) {
        get.source = rank == 0 ? of_1 : of_0[at];
        LLCL_CHECK(llcl_read(context, &get));
    }
    LLCL_CHECK(llcl_barrier(context));
    if (rank == 1) {
        memset(bytes[0], 0x5a, MANY);
        memset(llcl_region_address(region[0]), 0x5a, MANY);
    }
    stops = (rank == 0) == is_read_by_1();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        begin(context, of_0);
        for (int turn = 0; turn < 1000; turn++)
            usleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
        llcl_finalize_within(context, LEAVE_NS);
    } else {
        char *memory = bytes[0];
        if (is("region") || is("written"))
            memory = llcl_region_address(region[is("region") ? 0 : REGIONS - 1]);
        get.destination = llcl_region_local(region[0], 0);
        get.size = MANY;
        if (is("region"))
            LLCL_CHECK(llcl_read_async(context, &get));
        for (int at = 0; is("written") && at < REGIONS; at++) {
            llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
            put.peer = 1;
            put.size = MANY;
            put.source = llcl_region_local(region[at], 0);
            put.destination = of_1;
            LLCL_CHECK(llcl_write_async(context, &put));
        }
        usleep(400000);
        if (is("callback"))
            free_in_callback(context);
        int free = leave(context, memory);
#ifdef OPEN_MPI
        EXPECT(!free || !is("written"));
#endif
        memset(memory, 0, MANY);
        EXPECT(kill(pid_of_1, SIGCONT) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        long stored = 0;
        for (int turn = 0, flag; turn < 200; turn++) {
            MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            usleep(1000);
        }
        for (int at = 0; at < MANY; at++)
            stored += memory[at] != 0;
        printf("kept: %s: MPI has stored %ld bytes late\n", what, stored);
        EXPECT(stored == 0 || !free);
    }
    end_mpi();
    return 0;
}
