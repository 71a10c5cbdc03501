/* MPI alone, for the limits of the conduit's rows over MPI. Two ranks hand 8 bytes over by
 * MPI_Isend and a receive that was posted before and is polled by MPI_Test. `round_trip`: there and
 * back. `exchange`: each rank sends and waits for the other one's message, as in a barrier. The
 * first argument is the number of calls. The second one is the level of threads: `single`, as
 * GASNet's mpi conduit asks for in SEQ, or `multiple`, as this conduit needs. The rows are printed
 * as those of speed.c. */
#include <mpi.h>
#include <string.h>

#include "repeats.h"

static MPI_Request expected;
static char out[8], in[8];
static int me;

static void expect(void) { MPI_Irecv(in, sizeof in, MPI_BYTE, !me, 1, MPI_COMM_WORLD, &expected); }
static void finish(MPI_Request *request) {
    int done = 0;
    while (!done) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}
static void receive(void) {
    finish(&expected);
    expect();
}
static void send(void) {
    MPI_Request request;
    MPI_Isend(out, sizeof out, MPI_BYTE, !me, 1, MPI_COMM_WORLD, &request);
    finish(&request);
}
static void round_trip(void) {
    if (me == 0) {
        send();
        receive();
    } else {
        receive();
        send();
    }
}
static void exchange(void) {
    send();
    receive();
}

static void measure(const char *name, void run(void), long calls) {
    double ns[REPEATS];
    for (int i = -1; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        for (long call = 0; call < calls; call++) {
            run();
        }
        if (i >= 0) {
            ns[i] = (now() - start) / (double)calls;
        }
    }
    if (me == 0) {
        printf("%s conduit=none ranks=2 calls=%ld", name, calls);
        print_repeats(ns);
    }
}

int main(int argc, char **argv) {
    int provided, size;
    long calls = argc > 1 ? atol(argv[1]) : 1000;
    int level = argc > 2 && !strcmp(argv[2], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || provided < level || calls < 1) {
        fprintf(stderr, "raw_mpi: two ranks, calls, and single or multiple\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    expect();
    measure("round_trip", round_trip, calls);
    measure("exchange", exchange, calls);
    MPI_Cancel(&expected);
    MPI_Wait(&expected, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
