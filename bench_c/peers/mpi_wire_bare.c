/* The part of mpi_wire that measures what a library over MPI needs at least, by MPI's functions and
 * without libllcl: posts and reads by messages. A post takes a lock, keeps a record of the
 * operation, writes a request of 40 bytes and begins to send it. As with the library and its
 * module, one function calls another by a pointer, and that one calls MPI_Isend. A thread of rank 1
 * polls a receive for any rank and answers: with the word, or by the message with the bytes of a
 * large read. Rank 1's first thread sleeps meanwhile, as it does during the library's reads. */
#include "mpi_wire.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { RECORDS = 64, LOOKS = 4, MOST = 16384 }; /* MOST: bytes of a receive */

typedef struct request {
    uint64_t head, record, size, from, key;
} request_t;

typedef struct answer {
    uint64_t head, record, size, word;
} answer_t;

/* An operation of rank 0. */
typedef struct record {
    void *to;
    request_t request;
    MPI_Request sending;
} record_t;

static MPI_Comm bare; /* no other message matches its receives */
static int lock;
static record_t records[RECORDS];
static unsigned next;
static char received[MOST];
static MPI_Request receiving;

/* What a module does: writes the request and begins to send it. */
static int send_request(unsigned at, uint64_t size, uint64_t from, uint64_t key)
{
    record_t *record = &records[at];
    record->request = (request_t){1, at, size, from, key};
    return MPI_Isend(&record->request, sizeof record->request, MPI_BYTE, 1, TAG, bare, &record->sending);
}

static int (*volatile send_by)(unsigned, uint64_t, uint64_t, uint64_t) = send_request;

__attribute__((noinline)) void bare_post(void *to, size_t size)
{
    __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE); /* it is free: no other thread posts */
    unsigned at = next++ % RECORDS;
    records[at].to = to;
    send_by(at, size, all[1].offset, all[1].key);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void receive(void)
{
    MPI_Irecv(received, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, bare, &receiving);
}

/* Polls until a message has come, copies it, and begins the next receive. Yields the core after a
 * few looks that found nothing, as the library's threads do. */
static void await(void *message, size_t size)
{
    for (int look = 1, came = 0; !came; look++) {
        MPI_Test(&receiving, &came, MPI_STATUS_IGNORE);
        if (!came && look % LOOKS == 0)
            sched_yield();
    }
    memcpy(message, received, size);
    receive();
}

/* Rank 0: waits until rank 1's thread can answer. */
void bare_ready(void)
{
    char nothing[1];
    await(nothing, 0);
}

/* Waits for the answer to the read of a word that bare_post() has begun. */
void bare_end(void)
{
    answer_t answer;
    await(&answer, sizeof answer);
    record_t *record = &records[answer.record % RECORDS];
    memcpy(record->to, &answer.word, sizeof answer.word);
    MPI_Wait(&record->sending, MPI_STATUS_IGNORE);
}

/* Reads LARGE bytes, UNDER_WAY times. */
void bare_large_reads(void)
{
    MPI_Request data[UNDER_WAY];
    unsigned first = next;
    for (int at = 0; at < UNDER_WAY; at++) {
        char *to = large + (size_t)at * LARGE;
        MPI_Irecv(to, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &data[at]);
        bare_post(to, LARGE);
    }
    MPI_Waitall(UNDER_WAY, data, MPI_STATUSES_IGNORE);
    for (unsigned at = first; at != next; at++)
        MPI_Wait(&records[at % RECORDS].sending, MPI_STATUS_IGNORE);
}

static void *serve(void *count)
{
    MPI_Request sending[UNDER_WAY];
    int begun = 0;
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, bare);
    for (int left = *(int *)count; left > 0; left--) {
        request_t request;
        await(&request, sizeof request);
        answer_t answer = {1, request.record, 8, __atomic_load_n((uint64_t *)large, __ATOMIC_ACQUIRE)};
        if (request.size == 8)
            MPI_Isend(&answer, sizeof answer, MPI_BYTE, 0, TAG, bare, &sending[begun++]);
        else
            MPI_Isend(large, (int)request.size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &sending[begun++]);
        if (request.size == 8 || begun == UNDER_WAY) {
            MPI_Waitall(begun, sending, MPI_STATUSES_IGNORE);
            begun = 0;
        }
    }
    return NULL;
}

/* Rank 1: answers so many requests; of large reads, a multiple of UNDER_WAY. First it tells rank 0,
 * which calls bare_ready(). */
void bare_serve(int count)
{
    pthread_t thread;
    pthread_create(&thread, NULL, serve, &count);
    pthread_join(thread, NULL);
}

/* Collective: before the first of the functions above, and after the last one. */
void bare_begin(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &bare);
    receive();
}

void bare_finish(void)
{
    MPI_Cancel(&receiving);
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    MPI_Comm_free(&bare);
}
