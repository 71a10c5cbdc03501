/* Answers to writes with signal travel in the next request to the same peer. The program counts
 * MPI_Isend of the module: two ranks that write to each other in turn need one message for each
 * write, in the best of BATCHES batches, since the polling thread sends some answers alone. A rank
 * that computes answers all the same. 2 ranks. */
#include "expect.h"
#include <llcl_mpi.h>
#include <stdlib.h>

enum { BATCHES = 30, WRITES = 100, LARGEST = 4096, ALONE = 20 };

static int sends;
static llcl_context_t *context;
static llcl_remote_t all[2];
static char *region; /* bytes that the peer writes, and behind them the word of its signals */

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    __atomic_fetch_add(&sends, 1, __ATOMIC_RELAXED);
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
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

/* The fewest messages that a write of this size has needed, in hundredths. */
static int messages_for(size_t size)
{
    static char bytes[LARGEST];
    static uint64_t count;
    int least = 1000;
    llcl_write_signal_params_t put = write_of(bytes, size);
    for (int batch = 0; batch < BATCHES; batch++) {
        int before = __atomic_load_n(&sends, __ATOMIC_RELAXED), now;
        for (int turn = 0; turn < WRITES; turn++) {
            LLCL_CHECK(llcl_write_signal_async(context, &put));
            LLCL_CHECK(llcl_wait_word_from(context, signals(), ++count, -1, (uint32_t)(1 - rank)));
        }
        now = 100 * (__atomic_load_n(&sends, __ATOMIC_RELAXED) - before) / WRITES;
        least = now < least ? now : least;
    }
    LLCL_CHECK(llcl_flush_all(context));
    MPI_Barrier(MPI_COMM_WORLD);
    return least;
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

int main(int argc, char **argv)
{
    int level, small, large;
    llcl_region_t *handle;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    LLCL_CHECK(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context));
    LLCL_CHECK(llcl_region_allocate_shared(context, LARGEST + 8, &handle, all));
    region = llcl_region_address(handle);
    LLCL_CHECK(llcl_barrier(context));
    small = messages_for(64);
    large = messages_for(LARGEST);
    write_to_a_rank_that_computes();
    EXPECT(small >= 100 && small <= 120 && large >= 100 && large <= 120);
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    if (rank == 0)
        printf("answers: a write with signal takes %d.%02d messages, one of %d bytes %d.%02d\n", small / 100, small % 100, LARGEST,
               large / 100, large % 100);
    return 0;
}
