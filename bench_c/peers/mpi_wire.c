/* Compares the library over the MPI module with the MPI's own calls, in one run of two ranks. Rank
 * 0 measures. Rank 1 sleeps during the library's reads, writes, atomics and messages. During the
 * MPI's own calls it is inside MPI, which makes progress there only. A ratio above 1 means that the
 * library is slower (us, ns) or faster (k/s, MB/s). bench_c/peers/wire starts this program; with
 * the argument `few` it has no rows of threads, streams and broadcasts. */
#include "mpi_wire.h"
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if MPI_VERSION >= 4
#define BCAST_INIT MPI_Bcast_init
#define BCAST_NAME "MPI_Bcast_init, MPI_Start"
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define BCAST_INIT MPIX_Bcast_init
#define BCAST_NAME "MPIX_Bcast_init, MPI_Start"
#endif

enum { THREADS = 15, DEPTH = 16 };
enum { ROUNDS = 200, SENT = 1000 };

llcl_context_t *context;
llcl_remote_t all[2];
static MPI_Win window;
char *large;
static int few; /* no rows of threads, streams and broadcasts */
static double until, late; /* late: 99 of 100 calls of the last latency() were faster */

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

llcl_read_params_t read_of(void *where, size_t size)
{
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    get.peer = 1;
    get.source = all[1];
    get.destination = llcl_local_address(where);
    get.size = size;
    return get;
}

/* ---- one after the other ---- */

void our_read(uint64_t *word)
{
    llcl_read_params_t get = read_of(word, 8);
    LLCL_CHECK(llcl_read(context, &get));
}

static void our_write(uint64_t *word)
{
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    put.peer = 1;
    put.source = llcl_local_address(word);
    put.destination = all[1];
    put.size = 8;
    LLCL_CHECK(llcl_write(context, &put));
}

static void our_fetch_add(uint64_t *word)
{
    llcl_atomic_params_t add = LLCL_ATOMIC_PARAMS_INIT;
    add.peer = 1;
    add.target = all[1];
    add.op = LLCL_OP_ADD;
    add.type = LLCL_TYPE_U64;
    add.operand = 1;
    add.result = word;
    LLCL_CHECK(llcl_atomic(context, &add));
}

static void their_get(uint64_t *word)
{
    MPI_Get(word, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
    MPI_Win_flush(1, window);
}

static void their_put(uint64_t *word)
{
    MPI_Put(word, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
    MPI_Win_flush(1, window);
}

static void their_fetch_and_op(uint64_t *word)
{
    uint64_t one = 1;
    MPI_Fetch_and_op(&one, word, MPI_UINT64_T, 1, 0, MPI_SUM, window);
    MPI_Win_flush(1, window);
}

void must(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "mpi_wire: WRONG DATA by %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Rank 0: the measured operations must do what they should. */
static void verify(void)
{
    uint64_t word = 0x0123456789abcdef, before = 0, after = 0, none = 0;
    our_write(&word);
    our_fetch_add(&before);
    our_read(&after);
    must(before == word && after == word + 1, "a write, a fetch and add, and a read of 8 bytes");
    our_write(&none);
}

/* The median time of a call, in microseconds. */
double latency(void (*call)(uint64_t *))
{
    static double took[LATENCIES];
    uint64_t word = 0;
    for (int turn = -WARM; turn < LATENCIES; turn++) {
        double begin = now();
        call(&word);
        took[turn < 0 ? 0 : turn] = 1e6 * (now() - begin);
    }
    qsort(took, LATENCIES, sizeof *took, by_size);
    late = took[LATENCIES * 99 / 100];
    return took[LATENCIES / 2];
}

/* ---- threads: the loop of one thread, and the rate of several ---- */

static void *our_reads(void *data)
{
    uint64_t *count = data, done = 0, begun = 0, words[DEPTH];
    while (now() < until) {
        while (begun < __atomic_load_n(&done, __ATOMIC_ACQUIRE) + DEPTH) {
            llcl_read_params_t get = read_of(&words[begun % DEPTH], 8);
            get.on_complete = llcl_add_on(&done);
            LLCL_CHECK(llcl_read_async(context, &get));
            begun++;
        }
        LLCL_CHECK(llcl_progress(context));
    }
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < begun)
        LLCL_CHECK(llcl_progress(context));
    *count = done;
    return NULL;
}

static void *our_blocking_reads(void *data)
{
    uint64_t *count = data, word;
    for (*count = 0; now() < until; ++*count)
        our_read(&word);
    return NULL;
}

static void *their_gets(void *data)
{
    uint64_t *count = data, words[DEPTH];
    for (*count = 0; now() < until; *count += DEPTH) {
        for (int at = 0; at < DEPTH; at++)
            MPI_Get(&words[at], 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
    return NULL;
}

static void *their_blocking_gets(void *data)
{
    uint64_t *count = data, word;
    for (*count = 0; now() < until; ++*count)
        their_get(&word);
    return NULL;
}

/* Sends SENT messages of 8 bytes. */
static void *our_messages(void *data)
{
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    uint64_t *count = data;
    message.peer = 1;
    message.id = HANDLER;
    message.header = count;
    message.header_size = 8;
    for (*count = 0; *count < SENT; ++*count)
        LLCL_CHECK(llcl_am_async(context, &message));
    return NULL;
}

static void *their_messages(void *data)
{
    uint64_t *count = data;
    for (*count = 0; *count < SENT; ++*count)
        MPI_Send(count, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    return NULL;
}

/* Operations a second. `share`: the slowest thread's rate divided by the fastest one's. */
static double rate(void *(*run)(void *), int threads, double seconds, double *share)
{
    pthread_t thread[THREADS];
    uint64_t count[THREADS], sum = 0, least = UINT64_MAX, most = 1;
    double begin = now();
    until = begin + seconds;
    for (int at = 0; at < threads; at++)
        pthread_create(&thread[at], NULL, run, &count[at]);
    for (int at = 0; at < threads; at++) {
        pthread_join(thread[at], NULL);
        sum += count[at];
        least = count[at] < least ? count[at] : least;
        most = count[at] > most ? count[at] : most;
    }
    if (run == our_messages) {
        uint64_t there = 0;
        while (there < sum)
            our_read(&there);
    } else if (run == their_messages) {
        MPI_Recv(&sum, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum = (uint64_t)threads * SENT;
    }
    if (share)
        *share = (double)least / (double)most;
    return (double)sum / (now() - begin);
}

/* ---- broadcasts ---- */

/* Collective: microseconds of a broadcast. The two ranks are the root in turn, so that each waits
 * for the other. */
static double our_broadcast(size_t size)
{
    llcl_coll_t *plan[2];
    llcl_region_t *region;
    LLCL_CHECK(llcl_region_allocate(context, size, 0, &region));
    for (uint32_t root = 0; root < 2; root++) {
        llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
        LLCL_CHECK(llcl_team_world(context, &params.team));
        params.receive = llcl_region_local(region, 0);
        params.count = size;
        params.type = LLCL_TYPE_U8;
        params.root = root;
        LLCL_CHECK(llcl_broadcast_init(&params, &plan[root]));
    }
    double begin = 0;
    for (int round = -ROUNDS / 10; round < ROUNDS; round++) {
        if (round == 0)
            begin = now();
        for (int root = 0; root < 2; root++) {
            LLCL_CHECK(llcl_coll_start(plan[root]));
            LLCL_CHECK(llcl_coll_wait(plan[root], -1));
        }
    }
    double took = 1e6 * (now() - begin) / ROUNDS;
    LLCL_CHECK(llcl_coll_free(plan[0]));
    LLCL_CHECK(llcl_coll_free(plan[1]));
    LLCL_CHECK(llcl_region_free(region));
    return took;
}

#ifdef BCAST_INIT
static double their_broadcast(size_t size)
{
    MPI_Request plan[2];
    double begin = 0;
    for (int root = 0; root < 2; root++)
        BCAST_INIT(large, (int)size, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL, &plan[root]);
    for (int round = -ROUNDS / 10; round < ROUNDS; round++) {
        if (round == 0)
            begin = now();
        for (int root = 0; root < 2; root++) {
            MPI_Start(&plan[root]);
            MPI_Wait(&plan[root], MPI_STATUS_IGNORE);
        }
    }
    MPI_Request_free(&plan[0]);
    MPI_Request_free(&plan[1]);
    return 1e6 * (now() - begin) / ROUNDS;
}
#endif

/* ---- both ranks ---- */

static void handle(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
    __atomic_fetch_add((uint64_t *)large, 1, __ATOMIC_RELAXED); /* at the receiver `large` is the region's beginning */
}

/* Rank 1 while rank 0 measures MPI: inside MPI, which makes progress there. */
static void answer(void)
{
    char word[8];
    for (int turn = 0; !few && turn < 8 * SENT; turn++)
        MPI_Recv(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!few)
        MPI_Send(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Recv(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void row(const char *what, double ours, double theirs, const char *unit, const char *whose)
{
    printf("%-34s %10.3f %10.3f %-6s %6.2f  %s\n", what, ours, theirs, unit, ours / theirs, whose);
    fflush(stdout);
}

/* Reads from a rank that computes, and what they cannot be faster than. */
static void computing(int rank)
{
    uint64_t over = 1;
    double read = 0, computing;
    if (rank == 0)
        read = latency(our_read);
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL)); /* rank 1 sleeps until then */
    if (rank == 0) {
        computing = latency(our_read);
        our_write(&over); /* rank 1 stops computing */
        row("8 B read, the target computes", computing, read, "us", "the target sleeps");
        row("  99 of 100 faster than", late, read, "us", "the target sleeps, median");
    } else {
        for (volatile double x = 1; __atomic_load_n((uint64_t *)large, __ATOMIC_ACQUIRE) == 0;)
            x = x * 1.0001; /* computes, and calls neither the library nor MPI */
    }
    raw_limit(rank, read);
}

static void threads(void)
{
    double seconds = .5, share, messages;
    double eight = rate(our_reads, 8, seconds, NULL), fifteen = rate(our_reads, 15, seconds, &share);
    double blocking = rate(our_blocking_reads, 8, seconds, NULL);
    memset(large, 0, 8);
    our_write((uint64_t *)large); /* no message has come */
    messages = rate(our_messages, 8, 0, NULL);
    LLCL_CHECK(llcl_flush(context, 1));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    row("8 threads, messages", messages / 1e3, rate(their_messages, 8, 0, NULL) / 1e3, "k/s", "MPI_Send");
    row("8 threads, 16 reads each", eight / 1e3, rate(their_gets, 8, seconds, NULL) / 1e3, "k/s", "MPI_Get");
    row("8 threads, blocking reads", blocking / 1e3, rate(their_blocking_gets, 8, seconds, NULL) / 1e3, "k/s",
        "MPI_Get, MPI_Win_flush");
    row("15 threads, 16 reads each", fifteen / 1e3, eight / 1e3, "k/s", "8 threads of libllcl");
    printf("%-34s %10.3f\n", "15 threads, slowest to fastest", share);
}

static void measure(void)
{
    double word = 0, read = latency(our_read), write = latency(our_write), add = latency(our_fetch_add);
    if (few)
        LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    else
        threads();
    row("8 B read", read, latency(their_get), "us", "MPI_Get, MPI_Win_flush");
    row("8 B write", write, latency(their_put), "us", "MPI_Put, MPI_Win_flush");
    row("8 B fetch and add", add, latency(their_fetch_and_op), "us", "MPI_Fetch_and_op, MPI_Win_flush");
    MPI_Send(&word, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 65536};
    int level, rank, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING], what[40];
    llcl_region_t *region;
    void *theirs;
    few = argc > 1 && !strcmp(argv[1], "few");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    LLCL_CHECK(llcl_region_allocate_shared(context, LARGE, &region, all));
    /* Rank 0: the destination of transfers. Rank 1: the region, so that a read returns what its
     * handlers have counted. */
    large = rank == 1 ? llcl_region_address(region) : malloc(UNDER_WAY * LARGE);
    memset(large, 0, rank == 1 ? LARGE : UNDER_WAY * LARGE); /* no transfer touches a page for the first time */
    LLCL_CHECK(llcl_am_register(context, HANDLER, handle, NULL));
    MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &window);
    MPI_Win_lock_all(0, window);
    MPI_Get_library_version(version, &length);
    if (rank == 0) {
        printf("%.*s; libllcl %s\n", (int)strcspn(version, "\n,"), version, llcl_version_string());
        printf("%-34s %10s %10s %-6s %6s\n", "", "libllcl", "MPI", "", "ratio");
    }
    if (rank == 0)
        verify();
    computing(rank);
    if (rank == 0) {
        measure();
    } else {
        LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL)); /* sleeps until the library was measured */
        answer();
    }
    bare_begin();
    reads(rank);
    posts(rank);
    transfers(rank);
    bare_finish();
    if (!few)
        streams(rank);
    for (int at = 0; !few && at < 2; at++) {
        double ours = our_broadcast(sizes[at]);
#ifdef BCAST_INIT
        double by_mpi = their_broadcast(sizes[at]);
        snprintf(what, sizeof what, "persistent broadcasts, %zu B", sizes[at]);
        if (rank == 0)
            row(what, ours, by_mpi, "us", BCAST_NAME);
#else
        if (rank == 0)
            printf("persistent broadcasts, %zu B: %.3f us; this MPI has none\n", sizes[at], ours);
#endif
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    LLCL_CHECK(llcl_finalize(context));
    MPI_Barrier(MPI_COMM_WORLD); /* docs/linking.md, The end */
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    MPI_Finalize();
    return 0;
}
