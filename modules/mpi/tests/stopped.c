/* stopped LEVEL BYTES: reads of stopped ranks must not take all places for operations: a read of
 * another rank ends while they wait. Ranks 2 and on are stopped. LLCL_EXECUTION=offload, with room
 * for all reads (LLCL_IN_FLIGHT). With the level "funneled" the progress thread leaves its commands
 * to the thread that may call MPI; reads of stopped ranks must not take all places for these
 * commands, either. */
#include "expect.h"
#include <llcl_mpi.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 8192, READS = 2000, MOST_RANKS = 16 };
static const int64_t patience_ns = 30 * INT64_C(1000000000);

static char bytes[READS][MOST], one[MOST];

/* Sends a signal to all ranks from 2 on. */
static void signal_others(const int *pids, int size, int number)
{
    for (int peer = 2; peer < size; peer++)
        EXPECT(kill(pids[peer], number) == 0);
}

static int is_stopped(int pid)
{
    char path[32], state = 0;
    EXPECT(snprintf(path, sizeof path, "/proc/%d/stat", pid) < (int)sizeof path);
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && fclose(file) == 0);
    return state == 'T';
}

/* Stops all ranks from 2 on before they get a request. On a busy machine a rank runs on for a while
 * behind SIGSTOP. If it stopped in the middle of an answer, in the shared memory of MPICH, rank 0
 * would get no message of any rank. */
static void stop_others(const int *pids, int size)
{
    signal_others(pids, size, SIGSTOP);
    for (int peer = 2; peer < size; peer++)
        while (!is_stopped(pids[peer]))
            usleep(1000);
    usleep(10000);
}

int main(int argc, char **argv)
{
    int pids[MOST_RANKS], size;
    llcl_region_t *region;
    llcl_remote_t all[MOST_RANKS];
    const int level = argc > 1 && strcmp(argv[1], "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
    const size_t length = argc > 2 ? (size_t)atoi(argv[2]) : 0;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_context_t *context = start(level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(length > 0 && length <= MOST && size > 2 && size <= MOST_RANKS);
    LLCL_CHECK(llcl_region_allocate_shared(context, MOST, &region, all));
    pids[rank] = getpid();
    LLCL_CHECK(llcl_allgather_bytes(context, &pids[rank], sizeof pids[rank], pids));
    get.size = length;
    get.destination = llcl_local_address(one);
    for (get.peer = 1; rank == 0 && get.peer < (uint32_t)size; get.peer++) {
        get.source = all[get.peer];
        LLCL_CHECK(llcl_read(context, &get));
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (rank == 0) {
        uint64_t ended = 0, other = 0;
        stop_others(pids, size);
        get.on_complete = llcl_add_on(&ended);
        for (int at = 0; at < READS; at++) {
            get.peer = (uint32_t)(2 + at % (size - 2));
            get.source = all[get.peer];
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
        get.on_complete = llcl_add_on(&other);
        LLCL_CHECK(llcl_read_async(context, &get));
        EXPECT(llcl_wait_word(context, &other, 1, patience_ns) == LLCL_OK);
        EXPECT(__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < READS);
        signal_others(pids, size, SIGCONT);
        LLCL_CHECK(llcl_wait_word(context, &ended, READS, -1));
        printf("stopped: passed\n");
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    return 0;
}
