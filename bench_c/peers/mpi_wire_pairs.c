/* The part of mpi_wire that measures the library and MPI in short turns, one behind the other: the
 * machine is faster at some times than at others. Both ranks take part. */
#include "mpi_wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 60, POSTS = 20, READS = 100, FIRST = 5, TRANSFERS = 4, WINDOW = 64, LONGEST = 32 << 10, ROUNDS = 3 };

/* Whose calls a turn measures. BARE: those of mpi_wire_bare.c. Turns of the library and of the MPI
 * come first, in turn; then those of BARE and of the MPI. Right behind a turn of BARE the others
 * take another time, since threads have begun and ended. */
enum { OURS, BARE, THEIRS };

static uint64_t came; /* messages of streams that this rank has handled */

void meet(void)
{
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

static double middle(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

/* ---- reads, one after the other ---- */

static void two_sided(uint64_t *word, int rank)
{
    if (rank == 0)
        MPI_Send(word, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(word, 8, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

/* The median time, in microseconds, of a few reads or of MPI's round trips. */
static double read_or_trip(int whose, int rank)
{
    double took[READS];
    uint64_t word = 0;
    if (whose == BARE && rank == 1)
        bare_serve(FIRST + READS);
    else if (whose == BARE)
        bare_ready();
    for (int turn = -FIRST; turn < READS; turn++) {
        double begin = now();
        if (whose == THEIRS) {
            two_sided(&word, rank);
        } else if (rank == 0 && whose == OURS) {
            our_read(&word);
        } else if (rank == 0) {
            bare_post(&word, sizeof word);
            bare_end();
        }
        took[turn < 0 ? 0 : turn] = 1e6 * (now() - begin);
    }
    return middle(took, READS);
}

void reads(int rank)
{
    for (int whose = OURS; whose <= BARE; whose++) {
        double took[TURNS], theirs[TURNS];
        for (int turn = 0; turn < TURNS; turn++) {
            took[turn] = read_or_trip(whose, rank);
            meet(); /* rank 1 sleeps until then */
            theirs[turn] = read_or_trip(THEIRS, rank);
            meet();
        }
        if (rank == 0)
            row(whose == OURS ? "8 B read" : "  by bare messages", middle(took, TURNS), middle(theirs, TURNS), "us",
                "two-sided round trip");
    }
}

/* ---- posts ---- */

/* The MPI_Isend that the library calls inside a post, as the program sees it: MPI lets a program
 * replace its functions. Only the thread that measures notes the times. */
static __thread int notes;
static __thread double called, returned;

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    if (!notes)
        return PMPI_Isend(bytes, count, type, to, tag, comm, request);
    called = now();
    int result = PMPI_Isend(bytes, count, type, to, tag, comm, request);
    returned = now();
    return result;
}

/* The median time of a post, in nanoseconds, in a few of them; and of the post's own part, before
 * and behind its MPI_Isend. Each operation ends before the next post; an answer comes in any case.
 * The first ones find their code and data in no cache. */
static double post(int whose, double *own)
{
    double took[POSTS], rest[POSTS];
    uint64_t word = 0;
    if (whose == BARE)
        bare_ready();
    for (int turn = -FIRST; turn < POSTS; turn++) {
        int at = turn < 0 ? 0 : turn;
        llcl_read_params_t get = read_of(&word, 8);
        MPI_Request request;
        notes = 1;
        double begin = now(), end;
        if (whose == OURS)
            LLCL_CHECK(llcl_read_async(context, &get));
        else if (whose == BARE)
            bare_post(&word, sizeof word);
        else
            MPI_Isend(&word, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        end = now();
        notes = 0;
        took[at] = 1e9 * (end - begin);
        rest[at] = 1e9 * (end - returned + called - begin);
        if (whose == OURS) {
            LLCL_CHECK(llcl_flush(context, 1));
        } else if (whose == BARE) {
            bare_end();
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Recv(&word, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    *own = middle(rest, POSTS);
    return middle(took, POSTS);
}

/* Rank 1: answers the posts that are no reads of the library. */
static void answer_posts(int whose)
{
    char word[8];
    if (whose == BARE)
        bare_serve(FIRST + POSTS);
    for (int at = 0; whose == THEIRS && at < FIRST + POSTS; at++) {
        MPI_Recv(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(word, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
}

static void part(const char *what, double *values)
{
    double half = middle(values, TURNS);
    printf("%-34s %10.0f %10s ns, quartiles %.0f and %.0f, of %d turns\n", what, half, "", values[TURNS / 4],
           values[TURNS * 3 / 4], TURNS);
}

/* The median time of a post or of an MPI_Isend in a turn; see post(). */
static double turn_of_posts(int whose, int rank, double *own)
{
    double took = 0;
    if (rank == 0)
        took = post(whose, own);
    else
        answer_posts(whose);
    meet(); /* rank 1 sleeps until then */
    return took;
}

void posts(int rank)
{
    for (int whose = OURS; whose <= BARE; whose++) {
        double took[TURNS], theirs[TURNS], more[TURNS], own[TURNS], empty;
        for (int turn = 0; turn < TURNS; turn++) {
            took[turn] = turn_of_posts(whose, rank, &own[turn]);
            theirs[turn] = turn_of_posts(THEIRS, rank, &empty);
            more[turn] = took[turn] - theirs[turn];
            own[turn] -= empty; /* what the clock takes */
        }
        if (rank == 0 && whose == OURS) {
            row("8 B, cost of posting", middle(took, TURNS), middle(theirs, TURNS), "ns", "MPI_Isend");
            part("  more than MPI_Isend", more);
            part("  outside of its own MPI_Isend", own);
        } else if (rank == 0) {
            part("  of a bare post", own);
        }
    }
}

/* ---- large transfers ---- */

/* Begins UNDER_WAY reads of 1 MiB, or as many MPI_Isend and MPI_Irecv, and waits for their ends. */
static void few_large(int whose, int rank)
{
    MPI_Request request[UNDER_WAY];
    for (int at = 0; at < UNDER_WAY; at++) {
        if (whose == THEIRS && rank == 0) {
            MPI_Irecv(large + (size_t)at * LARGE, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[at]);
        } else if (whose == THEIRS) {
            MPI_Isend(large, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[at]);
        } else if (whose == OURS && rank == 0) {
            llcl_read_params_t get = read_of(large + (size_t)at * LARGE, LARGE);
            LLCL_CHECK(llcl_read_async(context, &get));
        }
    }
    if (whose == THEIRS)
        MPI_Waitall(UNDER_WAY, request, MPI_STATUSES_IGNORE);
    else if (whose == OURS && rank == 0)
        LLCL_CHECK(llcl_flush(context, 1));
    else if (whose == BARE && rank == 0)
        bare_large_reads();
}

/* Bytes per second of large transfers, a few at a time. */
static double bandwidth(int whose, int rank)
{
    if (whose == BARE && rank == 0)
        bare_ready();
    double begin = now();
    if (whose == BARE && rank == 1)
        bare_serve(TRANSFERS * UNDER_WAY);
    for (int turn = 0; turn < TRANSFERS; turn++)
        few_large(whose, rank);
    return (double)TRANSFERS * UNDER_WAY * LARGE / (now() - begin);
}

/* Rank 0: one more turn must bring the bytes of rank 1. */
static void verify_large(void)
{
    memset(large, 0, (size_t)UNDER_WAY * LARGE);
    few_large(OURS, 0);
    for (size_t at = 0; at < (size_t)UNDER_WAY * LARGE; at++)
        must(at % LARGE < sizeof(uint64_t) || large[at] == (char)(at % LARGE % 251), "a read of 1 MiB");
}

void transfers(int rank)
{
    for (int at = sizeof(uint64_t); rank == 1 && at < LARGE; at++) /* behind the word of the short operations */
        large[at] = (char)(at % 251);
    for (int whose = OURS; whose <= BARE; whose++) {
        double rate[TURNS], theirs[TURNS];
        for (int turn = -1; turn < TURNS; turn++) {
            int at = turn < 0 ? 0 : turn;
            rate[at] = bandwidth(whose, rank) / 1e6;
            meet(); /* rank 1 sleeps until then */
            theirs[at] = bandwidth(THEIRS, rank) / 1e6;
            meet();
        }
        if (rank == 0)
            row(whose == OURS ? "1 MiB, 4 under way" : "  by bare messages", middle(rate, TURNS), middle(theirs, TURNS),
                "MB/s", "MPI_Isend, MPI_Irecv");
    }
    if (rank == 0)
        verify_large();
    meet();
}

/* ---- streams of messages ---- */

static void on_message(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
    __atomic_fetch_add(&came, 1, __ATOMIC_RELEASE);
}

/* Sends `count` messages. */
static void send(uint32_t peer, const char *bytes, size_t size, int count)
{
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    message.peer = peer;
    message.id = STREAM;
    message.payload = bytes;
    message.payload_size = size;
    while (count-- > 0)
        LLCL_CHECK(llcl_am_async(context, &message));
}

static void await(uint64_t count)
{
    LLCL_CHECK(llcl_wait_word(context, &came, count, -1));
    came = 0;
}

/* WINDOW messages to rank 1, and one back. */
static void our_window(int rank, const char *bytes, size_t size)
{
    if (rank == 0)
        send(1, bytes, size, WINDOW);
    await(rank == 0 ? 1 : WINDOW);
    if (rank == 1)
        send(0, bytes, 8, 1);
}

static void their_window(int rank, char *bytes, int size)
{
    MPI_Request request[WINDOW];
    for (int at = 0; at < WINDOW; at++)
        if (rank == 0)
            MPI_Isend(bytes, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[at]);
        else
            MPI_Irecv(bytes + (size_t)at * LONGEST, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[at]);
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(bytes, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(bytes, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void stream(int rank, char *bytes, size_t size)
{
    double rates[2][TURNS]; /* of the library and of MPI */
    for (int turn = -1; turn < TURNS; turn++)
        for (int theirs = 0; theirs < 2; theirs++) {
            double begin;
            meet();
            begin = now();
            for (int round = 0; round < ROUNDS; round++)
                if (theirs)
                    their_window(rank, bytes, (int)size);
                else
                    our_window(rank, bytes, size);
            rates[theirs][turn < 0 ? 0 : turn] = ROUNDS * WINDOW * (double)size / (now() - begin);
        }
    if (rank == 0) {
        char what[40];
        snprintf(what, sizeof what, "messages of %zu B, 64 in a row", size);
        row(what, middle(rates[0], TURNS) / 1e6, middle(rates[1], TURNS) / 1e6, "MB/s", "MPI_Isend, MPI_Irecv");
    }
}

void streams(int rank)
{
    static const size_t sizes[] = {2048, 8192, 16384, LONGEST};
    char *bytes = calloc(WINDOW, LONGEST);
    LLCL_CHECK(llcl_am_register(context, STREAM, on_message, NULL));
    for (int at = 0; at < 4; at++)
        stream(rank, bytes, sizes[at]);
    free(bytes);
}
