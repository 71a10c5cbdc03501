/* With MPI_THREAD_FUNNELED and LLCL_EXECUTION=offload the progress thread leaves its commands to
 * the thread that may call MPI. Reads of a stopped rank must not take all places for these
 * commands: a read of another rank ends while they wait. 3 ranks, with room for all reads
 * (LLCL_IN_FLIGHT). */
#include "expect.h"
#include <llcl_mpi.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

enum { SIZE = 4096, READS = 2000 };

static char bytes[READS][SIZE], one[SIZE];

int main(void)
{
    int pids[3];
    llcl_region_t *region;
    llcl_remote_t all[3];
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_context_t *context = start(MPI_THREAD_FUNNELED);
    LLCL_CHECK(llcl_region_allocate_shared(context, SIZE, &region, all));
    pids[rank] = getpid();
    LLCL_CHECK(llcl_allgather_bytes(context, &pids[rank], sizeof pids[rank], pids));
    get.size = SIZE;
    get.destination = llcl_local_address(one);
    for (get.peer = 1; rank == 0 && get.peer < 3; get.peer++) {
        get.source = all[get.peer];
        LLCL_CHECK(llcl_read(context, &get));
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (rank == 0) {
        uint64_t ended = 0;
        EXPECT(kill(pids[2], SIGSTOP) == 0);
        get.peer = 2;
        get.source = all[2];
        get.on_complete = llcl_add_on(&ended);
        for (int at = 0; at < READS; at++) {
            get.destination = llcl_local_address(bytes[at]);
            LLCL_CHECK(llcl_read_async(context, &get));
        }
        /* Meanwhile MPI takes what it can, and the other reads take their places. */
        for (int turn = 0; turn < 200; turn++) {
            llcl_progress(context);
            usleep(1000);
        }
        get.peer = 1;
        get.source = all[1];
        get.destination = llcl_local_address(one);
        get.on_complete = llcl_no_completion();
        LLCL_CHECK(llcl_read(context, &get));
        EXPECT(__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < READS);
        EXPECT(kill(pids[2], SIGCONT) == 0);
        LLCL_CHECK(llcl_wait_word(context, &ended, READS, -1));
        printf("stopped: passed\n");
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
