/* How many messages operations need. The program counts MPI_Isend of the module. 2 ranks.
 *
 * Answers to writes with signal travel in the next request to the same peer: two ranks that write
 * to each other in turn need ENOUGH hundredths of a message for each write, or fewer, in the best
 * of MOST batches, also for writes of no bytes. The polling thread sends some answers alone, and on
 * a busy machine most of them for a while. A rank that computes answers all the same.
 *
 * Reads that are posted while a request is unanswered travel together in the next one, unless they
 * are long. A write with signal does not wait.
 *
 * A blocking atomic takes a request and an answer.
 *
 * The thread that posts does not ask MPI whether the send of a request has ended, for which MPICH
 * makes progress. */
#include "expect.h"
#include <llcl_mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST = 50, MOST = 1000, WRITES = 20, ENOUGH = 120, LARGEST = 4096, ALONE = 20, OPERATIONS = 40 };
enum { BATCHES = 15, REQUESTS = 3, ANSWERS = 7 };

static int sends, requests, slow;
static __thread int posts, asks; /* this thread is inside read_to(); its calls of MPI_Test there */
static llcl_context_t *context;
static llcl_remote_t all[2];
static char *region; /* bytes that the peer writes, and behind them the word of its signals */

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    __atomic_fetch_add(&sends, 1, __ATOMIC_RELAXED);
    if (tag == REQUESTS)
        __atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
    if (tag == ANSWERS && __atomic_load_n(&slow, __ATOMIC_RELAXED))
        usleep(20000); /* longer than all reads take to be posted */
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    asks += posts;
    return PMPI_Test(request, ended, status);
}

static uint64_t *signals(void)
{
    return (uint64_t *)(region + LARGEST);
}

static llcl_write_signal_params_t write_of(void *bytes, size_t size)
{
    llcl_write_signal_params_t put = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    put.peer = (uint32_t)(1 - rank);
    put.source = llcl_local_address(bytes);
    put.destination = all[1 - rank];
    put.size = size;
    put.signal = llcl_at(all[1 - rank], LARGEST);
    put.signal_op = LLCL_SIGNAL_ADD;
    put.signal_value = 1;
    return put;
}

/* The fewest messages that a write of this size has needed, in hundredths, at the rank that needed
 * more. After LEAST batches there are more only until both ranks have needed few. */
static int messages_for(size_t size)
{
    static char bytes[LARGEST];
    static uint64_t count;
    int least = 1000, worse = least;
    llcl_write_signal_params_t put = write_of(bytes, size);
    for (int batch = 0; batch < LEAST || (batch < MOST && worse > ENOUGH); batch++) {
        int before = __atomic_load_n(&sends, __ATOMIC_RELAXED), now;
        for (int turn = 0; turn < WRITES; turn++) {
            LLCL_CHECK(llcl_write_signal_async(context, &put));
            LLCL_CHECK(llcl_wait_word_from(context, signals(), ++count, -1, (uint32_t)(1 - rank)));
        }
        now = 100 * (__atomic_load_n(&sends, __ATOMIC_RELAXED) - before) / WRITES;
        least = now < least ? now : least;
        MPI_Allreduce(&least, &worse, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    LLCL_CHECK(llcl_flush_all(context));
    MPI_Barrier(MPI_COMM_WORLD);
    return worse;
}

/* Each write of rank 0 ends though rank 1 calls nothing until it has seen them all. */
static void write_to_a_rank_that_computes(void)
{
    uint64_t word = 0, before = __atomic_load_n(signals(), __ATOMIC_ACQUIRE);
    llcl_write_signal_params_t put = write_of(&word, 8);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; rank == 0 && turn < ALONE; turn++)
        LLCL_CHECK(llcl_write_signal(context, &put));
    while (rank == 1 && __atomic_load_n(signals(), __ATOMIC_ACQUIRE) < before + ALONE)
        word++;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The messages of both ranks for a blocking atomic of rank 0, in hundredths, at the fewest of
 * BATCHES. Rank 1 calls nothing of libllcl. */
static int messages_for_an_atomic(void)
{
    llcl_remote_t word = llcl_at(all[1], LARGEST);
    int least = 1000;
    for (int batch = 0; batch < BATCHES; batch++) {
        int before = __atomic_load_n(&sends, __ATOMIC_RELAXED), now, of_all;
        MPI_Barrier(MPI_COMM_WORLD);
        for (uint64_t turn = 0, old = 0, first = 0; rank == 0 && turn < WRITES; turn++) {
            llcl_atomic_params_t add = LLCL_ATOMIC_PARAMS_INIT;
            add.peer = 1;
            add.target = word;
            add.op = LLCL_OP_ADD;
            add.type = LLCL_TYPE_U64;
            add.operand = 3;
            add.result = &old;
            LLCL_CHECK(llcl_atomic(context, &add));
            first = turn == 0 ? old : first;
            EXPECT(old == first + 3 * turn);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        now = 100 * (__atomic_load_n(&sends, __ATOMIC_RELAXED) - before) / WRITES;
        MPI_Allreduce(&now, &of_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        least = of_all < least ? of_all : least;
    }
    return least;
}

static void read_to(void *bytes, size_t size)
{
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    get.peer = 1;
    get.source = all[1];
    get.destination = llcl_local_address(bytes);
    get.size = size;
    posts = 1;
    LLCL_CHECK(llcl_read_async(context, &get));
    posts = 0;
}

static void write_with_signal(void *bytes, size_t size)
{
    llcl_write_signal_params_t put = write_of(bytes, size);
    LLCL_CHECK(llcl_write_signal_async(context, &put));
}

/* The first request of a batch is unanswered while the other operations are posted. In nearly all
 * batches they need `enough` requests at most, and in one of them at least `early` leave before the
 * first answer. */
static void requests_of(int operations, void (*post)(void *, size_t), size_t size, int enough, int early)
{
    static char bytes[OPERATIONS][LARGEST];
    int few = 0, most = 0;
    __atomic_store_n(&slow, rank, __ATOMIC_RELAXED);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int batch = 0; rank == 0 && batch < BATCHES; batch++) {
        int before = __atomic_load_n(&requests, __ATOMIC_RELAXED), now;
        usleep(1000); /* a thread of the library that still works would post the operations later */
        for (int turn = 0; turn < operations; turn++)
            post(bytes[turn], size);
        now = __atomic_load_n(&requests, __ATOMIC_RELAXED) - before;
        most = now > most ? now : most;
        LLCL_CHECK(llcl_flush(context, 1));
        few += __atomic_load_n(&requests, __ATOMIC_RELAXED) - before <= enough;
    }
    EXPECT(rank == 1 || (few >= BATCHES - 2 && most >= early));
    MPI_Barrier(MPI_COMM_WORLD);
    __atomic_store_n(&slow, 0, __ATOMIC_RELAXED);
}

static void asks_of_posts(void)
{
    uint64_t word;
    int before = asks;
    for (int turn = 0; rank == 0 && turn < OPERATIONS; turn++) {
        read_to(&word, 8);
        LLCL_CHECK(llcl_flush(context, 1));
    }
    EXPECT(asks - before < OPERATIONS / 2);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(void)
{
    int none, small, large, atomic;
    llcl_region_t *handle;
    context = start(MPI_THREAD_MULTIPLE);
    LLCL_CHECK(llcl_region_allocate_shared(context, LARGEST + 8, &handle, all));
    region = llcl_region_address(handle);
    LLCL_CHECK(llcl_barrier(context));
    none = messages_for(0);
    small = messages_for(64);
    large = messages_for(LARGEST);
    write_to_a_rank_that_computes();
    if (rank == 0) {
        uint64_t word;
        read_to(&word, 8); /* asks for the region's key */
        LLCL_CHECK(llcl_flush(context, 1));
    }
    atomic = messages_for_an_atomic();
    EXPECT(atomic == 200);
    requests_of(OPERATIONS, read_to, 8, 2, 0);
    requests_of(2, read_to, LARGEST, 2, 2);
    requests_of(2, write_with_signal, 8, 2, 2);
    asks_of_posts();
    EXPECT(none >= 100 && none <= ENOUGH);
    EXPECT(small >= 100 && small <= ENOUGH && large >= 100 && large <= ENOUGH);
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    if (rank == 0)
        printf("answers: a write with signal takes %d.%02d messages, one of %d bytes %d.%02d\n", small / 100, small % 100, LARGEST,
               large / 100, large % 100);
    return 0;
}
