/* With MPI_THREAD_FUNNELED a thread that waits for credit of a peer on its own node must go on
 * polling MPI, and not sleep for credit (`credit_sleeps`): no other thread may poll. 3 ranks, of
 * which 0 and 1 are on one node (LLCL_NODE_ID=0,0,1). Rank 0 sends messages to rank 1, whose
 * handler does not return until rank 2 has read memory of rank 0. */
#include "expect.h"
#include <llcl_mpi.h>
#include <mpi.h>
#include <unistd.h>

enum { MESSAGES = 3000, READS = 50 };

static uint64_t *own;

static void wait_for_word(llcl_am_t *message, void *unused)
{
    (void)message;
    (void)unused;
    while (__atomic_load_n(own, __ATOMIC_ACQUIRE) == 0)
        usleep(100);
}

int main(void)
{
    llcl_region_t *region;
    llcl_remote_t all[3];
    llcl_stats_t stats = LLCL_STATS_INIT;
    uint64_t bytes, one = 1;
    llcl_context_t *context = start(MPI_THREAD_FUNNELED);
    LLCL_CHECK(llcl_region_allocate_shared(context, 64, &region, all));
    own = llcl_region_address(region);
    LLCL_CHECK(llcl_am_register(context, 0, wait_for_word, NULL));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (rank == 0) {
        llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
        am.peer = 1;
        for (int turn = 0; turn < MESSAGES; turn++)
            LLCL_CHECK(llcl_am_async(context, &am));
        LLCL_CHECK(llcl_stats_get(context, &stats));
        EXPECT(stats.credit_reads > 0 && stats.credit_sleeps == 0);
    } else if (rank == 2) {
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.source = all[0];
        get.destination = llcl_local_address(&bytes);
        get.size = sizeof bytes;
        for (int turn = 0; turn < READS; turn++) {
            LLCL_CHECK(llcl_read(context, &get));
            usleep(2000);
        }
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        put.peer = 1;
        put.source = llcl_local_address(&one);
        put.destination = all[1];
        put.size = sizeof one;
        LLCL_CHECK(llcl_write(context, &put));
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    LLCL_CHECK(llcl_finalize(context));
    printf("credit: rank %d: passed\n", rank);
    MPI_Finalize();
    return 0;
}
