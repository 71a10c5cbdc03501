/* Does a barrier of two ranks over MPI need more than one message of each rank? The answer to the
 * word of a barrier must travel with the word of the next one. The program counts MPI_Isend of the
 * module. Some answers travel alone, since the thread llcl-wire polls, too, so the best of several
 * batches counts. 2 ranks, LLCL_TRANSPORT=mpi. */
#include "../t.h"
#include <mpi.h>

enum { BATCHES = 30, BARRIERS = 100 };

static int sends;

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    __atomic_fetch_add(&sends, 1, __ATOMIC_RELAXED);
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

static void named_barrier(void) {
    gasnet_barrier_notify(5, 0);
    CHECK(gasnet_barrier_wait(5, 0) == GASNET_OK);
}

/* The fewest messages for a barrier, in hundredths. */
static int messages_of(void (*meet)(void)) {
    int least = 1000;
    for (int batch = 0; batch < BATCHES; batch++) {
        int before = __atomic_load_n(&sends, __ATOMIC_RELAXED), now;
        for (int turn = 0; turn < BARRIERS; turn++) {
            meet();
        }
        now = 100 * (__atomic_load_n(&sends, __ATOMIC_RELAXED) - before) / BARRIERS;
        least = now < least ? now : least;
    }
    return least;
}

int main(void) {
    int plain, named;
    begin(NULL, 0);
    plain = messages_of(barrier);
    named = messages_of(named_barrier);
    printf("rank %u: a barrier takes %d.%02d messages, a named one %d.%02d\n", me, plain / 100, plain % 100,
           named / 100, named % 100);
    CHECK(plain >= 90 && plain <= 120);
    CHECK(named >= 90 && named <= 120);
    end();
    return 0;
}
