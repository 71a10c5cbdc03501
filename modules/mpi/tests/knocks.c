/* The memory of ranks at one of which all others knock. Rank 0 serves nothing for a while. The
 * others send it messages, reads and atomics until it has taken no more of them for a while. Then
 * each rank tells what it has allocated since the beginning, and at the end everything must have
 * arrived.
 *
 * The argument says why rank 0 serves nothing:
 * - "stopped": no thread of it calls MPI, and then its program's thread calls MPI, but not the
 *   library (MPI_THREAD_FUNNELED). So messages for which no receive is posted are MPI's to keep.
 * - "computes": its program's thread runs no handlers (MPI_THREAD_MULTIPLE, polled handlers).
 * - "mpi": nothing of the library. The others send messages as large as a knock, for which rank 0
 *   has no receive, and rank 0 calls MPI.
 *
 * The program counts what the module posts and sends, since the module, too, calls the functions of
 * MPI that stand here. */
#include "expect.h"
#include <fcntl.h>
#include <llcl_mpi.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HANDLER = 3, MOST_RANKS = 64, SMALL = 200, LARGE = 8000, ALONE = 300, OPERATIONS = 64, PATIENCE_MS = 200 };
/* Classes of llcl_wire.h, which are the tags of messages; larger tags are bytes of large reads. */
enum { FIRST_KNOCK = 4, LAST_KNOCK = 6, LAST_CLASS = 7, KNOCK_MOST = 512, KNOCKS_OF_PEER = 6 };
/* What MPI may allocate at rank 0, once and for each message: several times what MPIs need. */
enum { SLACK = 2 << 20, MESSAGE = 32 << 10 };

/* Memory that the ranks share, by which they meet without a call of the library or of MPI. */
struct meeting {
    long phase;                /* set by rank 0 */
    long arrived;              /* ranks that need nothing of rank 0 any more */
    long ready;                /* ranks that have sent what they can */
    long accepted[MOST_RANKS]; /* messages that rank 0 must handle */
};

/* Bytes. */
struct memory {
    long heap, own, shared; /* of the C library's heap in use; resident private pages; resident shared ones */
};

/* What a rank has sent to rank 0 since it was last zero. */
struct sent {
    long knocks, bytes, largest, others;
};

static int size;
static long receives, receive_bytes, tested, handled, ended;
static struct sent sent;
static struct meeting *meeting;

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    /* What the module posts before it has looked for messages; later ones replace those. */
    if (source == MPI_ANY_SOURCE && !__atomic_load_n(&tested, __ATOMIC_RELAXED)) {
        receives++;
        receive_bytes += count;
    }
    return PMPI_Irecv(bytes, count, type, source, tag, comm, request);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    __atomic_store_n(&tested, 1, __ATOMIC_RELAXED);
    return PMPI_Test(request, flag, status);
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (to == 0 && tag >= FIRST_KNOCK && tag <= LAST_KNOCK) {
        __atomic_fetch_add(&sent.knocks, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&sent.bytes, count, __ATOMIC_RELAXED);
        if (count > sent.largest)
            __atomic_store_n(&sent.largest, count, __ATOMIC_RELAXED);
    } else if (to == 0 && tag <= LAST_CLASS) {
        __atomic_fetch_add(&sent.others, 1, __ATOMIC_RELAXED);
    }
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct memory memory(void)
{
    struct mallinfo2 heap = mallinfo2();
    struct memory sum = {(long)(heap.uordblks + heap.hblkhd), 0, 0};
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512], mode[8] = "";
    long kib, resident = 0;
    EXPECT(file != NULL);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*x-%*x %7s", mode) == 1)
            continue;
        if (sscanf(line, "Rss: %ld", &kib) == 1)
            resident = kib;
        else if (sscanf(line, "Anonymous: %ld", &kib) == 1)
            *(mode[3] == 's' ? &sum.shared : &sum.own) += (mode[3] == 's' ? resident : kib) * 1024;
    }
    fclose(file);
    return sum;
}

static struct memory since(struct memory before)
{
    struct memory now = memory();
    return (struct memory){now.heap - before.heap, now.own - before.own, now.shared - before.shared};
}

/* Gathers bytes of all ranks at all. It uses the library while that is open: a rank that waits in
 * a call of MPI serves no peer with MPI_THREAD_FUNNELED. */
static void gather(llcl_context_t *context, const void *mine, int bytes, void *all)
{
    if (context)
        LLCL_CHECK(llcl_allgather_bytes(context, mine, (size_t)bytes, all));
    else
        MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* One line for rank 0, and one for the rank of the others that has allocated most. */
static void report(llcl_context_t *context, const char *when, struct memory mine)
{
    struct memory all[MOST_RANKS], most = {0, 0, 0};
    double peers = size - 1;
    gather(context, &mine, sizeof mine, all);
    if (rank != 0)
        return;
    for (int other = 1; other < size; other++) {
        most.heap = all[other].heap > most.heap ? all[other].heap : most.heap;
        most.own = all[other].own > most.own ? all[other].own : most.own;
        most.shared = all[other].shared > most.shared ? all[other].shared : most.shared;
    }
    printf("  %s; KiB, and for each peer\n"
           "    rank 0: heap %.1f (%.2f), private pages %.0f (%.1f), shared pages %.0f (%.1f)\n"
           "    most of another rank: heap %.1f, private pages %.0f, shared pages %.0f\n",
           when, mine.heap / 1024., mine.heap / 1024. / peers, mine.own / 1024., mine.own / 1024. / peers,
           mine.shared / 1024., mine.shared / 1024. / peers, most.heap / 1024., most.own / 1024., most.shared / 1024.);
}

static void await(const long *word, long value)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
        usleep(1000);
}

/* Makes the memory by which the ranks meet. */
static void open_meeting(void)
{
    char name[] = "/tmp/llcl-knocks-XXXXXX";
    int file = rank == 0 ? mkstemp(name) : -1;
    EXPECT(rank != 0 || (file >= 0 && ftruncate(file, sizeof *meeting) == 0));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        file = open(name, O_RDWR);
    EXPECT(file >= 0);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(meeting != MAP_FAILED);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
    handled++;
}

static void has_ended(void *data, llcl_status_t status)
{
    (void)data;
    EXPECT(status == LLCL_OK);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

/* Sends each kind of message until none was accepted for a while. Returns how many operations have
 * to end. */
static long send_all(llcl_context_t *context, llcl_remote_t word)
{
    static char payload[LARGE];
    static uint64_t words[3];
    long begun = 0, operations = 0, last = milliseconds();
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    message.id = HANDLER;
    message.payload = payload;
    get.source = add.target = word;
    get.destination = llcl_local_address(words);
    get.size = 8;
    add.operand = 1;
    message.on_complete = get.on_complete = add.on_complete = llcl_callback(has_ended, NULL);
    while (milliseconds() < last + PATIENCE_MS) {
        static const size_t sizes[] = {SMALL, LARGE};
        for (int kind = 0; kind < 2; kind++) {
            message.payload_size = sizes[kind];
            if (llcl_try_am_async(context, &message) == LLCL_OK)
                begun++, meeting->accepted[rank]++, last = milliseconds();
        }
        if (operations < OPERATIONS && llcl_try_read_async(context, &get) == LLCL_OK)
            begun++, operations++, last = milliseconds();
        if (operations < OPERATIONS && llcl_try_fetch_add_async(context, &add) == LLCL_OK)
            begun++, operations++, last = milliseconds();
        LLCL_CHECK(llcl_progress(context));
    }
    return begun;
}

/* A rank other than 0. */
static void knock(llcl_context_t *context, llcl_remote_t word, struct memory *mine)
{
    struct memory before = memory();
    __atomic_fetch_add(&meeting->arrived, 1, __ATOMIC_RELEASE);
    await(&meeting->phase, 1);
    memset(&sent, 0, sizeof sent);
    long begun = send_all(context, word);
    *mine = since(before);
    __atomic_fetch_add(&meeting->ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&meeting->phase, __ATOMIC_ACQUIRE) < 2)
        LLCL_CHECK(llcl_progress(context));
    struct sent until_then = sent;
    while (__atomic_load_n(&ended, __ATOMIC_RELAXED) < begun)
        LLCL_CHECK(llcl_progress(context));
    sent = until_then;
}

/* Rank 0. `stopped`: MPI makes progress only in calls of this thread. */
static void be_knocked_at(llcl_context_t *context, int stopped, struct memory *in_no_call, struct memory *in_mpi)
{
    struct memory before;
    long accepted = 0, until;
    while (__atomic_load_n(&meeting->arrived, __ATOMIC_ACQUIRE) < size - 1)
        LLCL_CHECK(llcl_progress(context));
    before = memory();
    __atomic_store_n(&meeting->phase, 1, __ATOMIC_RELEASE);
    await(&meeting->ready, size - 1);
    *in_no_call = since(before);
    for (until = milliseconds() + PATIENCE_MS; stopped && milliseconds() < until;) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    *in_mpi = since(before);
    __atomic_store_n(&meeting->phase, 2, __ATOMIC_RELEASE);
    for (int other = 1; other < size; other++)
        accepted += meeting->accepted[other];
    while (handled < accepted)
        LLCL_CHECK(llcl_progress(context));
}

/* What the ranks have sent. Checks what docs/flow-control.md says of knocks. */
static void tell_knocks(llcl_context_t *context, int stopped, struct memory in_mpi)
{
    struct sent mine = sent;
    struct sent all[MOST_RANKS], sum = {0, 0, 0, 0};
    gather(context, &mine, sizeof mine, all);
    for (int other = 1; rank == 0 && other < size; other++) {
        EXPECT(all[other].largest <= KNOCK_MOST);
        sum.knocks += all[other].knocks;
        sum.bytes += all[other].bytes;
        sum.others += all[other].others;
        sum.largest = all[other].largest > sum.largest ? all[other].largest : sum.largest;
    }
    if (rank != 0)
        return;
    EXPECT(receives > 0 && receive_bytes % receives == 0);
    printf("  the module has posted %ld receives of %ld bytes for all peers, %ld KiB; rank 0 was sent %ld knocks of %.0f bytes "
           "(%ld at most) and %ld other messages",
           receives, receive_bytes / receives, receive_bytes / 1024, sum.knocks,
           sum.bytes / (double)(sum.knocks ? sum.knocks : 1), sum.largest, sum.others);
    if (stopped) {
        long kept = sum.knocks + sum.others - receives;
        EXPECT(sum.knocks >= size - 1 && sum.knocks <= KNOCKS_OF_PEER * (size - 1));
        EXPECT(in_mpi.own + in_mpi.shared <= SLACK + (sum.knocks + sum.others) * MESSAGE);
        printf(", so MPI has kept %ld", kept > 0 ? kept : 0);
    }
    printf("\n");
}

static void by_the_library(int stopped)
{
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t all[MOST_RANKS];
    struct memory mine = {0, 0, 0}, in_mpi = {0, 0, 0};
    setenv("LLCL_AM_HANDLERS", "polled", 1);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    LLCL_CHECK(llcl_am_register(context, HANDLER, handle, NULL));
    LLCL_CHECK(llcl_region_allocate_shared(context, 4096, &region, all));
    gather(context, NULL, 0, NULL);
    if (rank == 0)
        be_knocked_at(context, stopped, &mine, &in_mpi);
    else
        knock(context, all[0], &mine);
    report(context, stopped ? "rank 0 in no call" : "rank 0 computes", mine);
    if (stopped)
        report(context, "rank 0 in calls of MPI", rank == 0 ? in_mpi : mine);
    tell_knocks(context, stopped, in_mpi);
    LLCL_CHECK(llcl_finalize(context));
}

/* Each other rank sends `count` messages as large as a knock, for which rank 0 has no receive. */
static void by_mpi(int count)
{
    static char bytes[ALONE];
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    struct memory before = memory(), mine;
    char title[64];
    int found, until_found = 0;
    EXPECT(requests != NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; rank != 0 && at < count; at++)
        PMPI_Isend(bytes, ALONE, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[at]);
    /* The last message of each: behind it nothing of this rank is under way. */
    if (rank != 0)
        PMPI_Send(bytes, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
    else
        while (until_found < size - 1) {
            MPI_Status from;
            MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, &from);
            if (found) {
                PMPI_Recv(bytes, 0, MPI_BYTE, from.MPI_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                until_found++;
            }
        }
    mine = since(before);
    for (int at = 0; rank == 0 && at < count * (size - 1); at++)
        PMPI_Recv(bytes, ALONE, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; rank != 0 && at < count; at++)
        MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
    free(requests);
    snprintf(title, sizeof title, "%d messages of %d bytes from each", count, ALONE);
    report(NULL, title, mine);
    if (rank == 0)
        printf("    a message takes %.0f bytes of heap, %.0f of private pages, and %.0f of shared pages\n",
               mine.heap / (count * (size - 1.)), mine.own / (count * (size - 1.)), mine.shared / (count * (size - 1.)));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "stopped";
    int stopped = strcmp(what, "stopped") == 0, given;
    MPI_Init_thread(&argc, &argv, stopped ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size >= 2 && size <= MOST_RANKS);
    open_meeting();
    if (rank == 0)
        printf("knocks: %d ranks, %s\n", size, what);
    if (strcmp(what, "mpi") == 0)
        for (int count = 16; count <= 4096; count *= 4)
            by_mpi(count);
    else
        by_the_library(stopped);
    MPI_Finalize();
    return 0;
}
