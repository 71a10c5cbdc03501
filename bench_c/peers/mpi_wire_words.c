/* The part of mpi_wire that measures what a read from a computing target takes at least: a word
 * goes to a thread of rank 1 and back through memory that both ranks share, without the library and
 * MPI. On two cores, one of which computes, the two threads share the other one, so each hands the
 * core over to the other. Both yield when they find nothing, which takes less time than to sleep
 * and to be woken. */
#include "mpi_wire.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOOKS = 4 };

/* A line each, so that no store takes the other word's line away. */
typedef struct shared {
    uint64_t sent, unused[7];
    uint64_t answered;
} shared_t;

static shared_t *lines;

static uint64_t await(const uint64_t *word, uint64_t old)
{
    for (;;) {
        for (int look = 0; look < LOOKS; look++) {
            uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
            if (seen != old)
                return seen;
        }
        sched_yield();
    }
}

static void *echo(void *last)
{
    for (uint64_t seen = 0; seen != *(uint64_t *)last;) {
        seen = await(&lines->sent, seen);
        __atomic_store_n(&lines->answered, seen, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void to_and_fro(uint64_t *word)
{
    (void)word;
    uint64_t answered = lines->answered;
    __atomic_store_n(&lines->sent, answered + 1, __ATOMIC_RELEASE);
    await(&lines->answered, answered);
}

/* Lets the calling thread run on the first core of `cores` only, or on the last one. */
static void pin(const cpu_set_t *cores, int last)
{
    cpu_set_t one;
    int found = -1;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, cores) && (found < 0 || last))
            found = core;
    CPU_ZERO(&one);
    CPU_SET(found, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Collective. The median time at rank 0, in microseconds, of a word to and fro between threads that
 * share a core, or do not. */
static double words(int rank, int share)
{
    uint64_t last = WARM + LATENCIES;
    double took = 0;
    pthread_t thread;
    cpu_set_t cores;
    sched_getaffinity(0, sizeof cores, &cores);
    lines->sent = lines->answered = 0;
    meet();
    pin(&cores, rank == 1 && !share);
    if (rank == 0) {
        took = latency(to_and_fro);
    } else {
        pthread_create(&thread, NULL, echo, &last); /* on this thread's core */
        pthread_join(thread, NULL);
    }
    sched_setaffinity(0, sizeof cores, &cores);
    meet();
    return took;
}

void raw_limit(int rank, double read)
{
    char name[40] = "";
    int file;
    /* Not MPI_Win_allocate_shared: over TCP an MPI may treat the ranks as two nodes. */
    if (rank == 0)
        snprintf(name, sizeof name, "/llcl-words-%ld", (long)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    file = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *lines) != 0 ||
        (lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    shm_unlink(name);
    double apart = words(rank, 0), shared = words(rank, 1);
    if (rank == 0) {
        row("a word to and fro, one core", shared, apart, "us", "two cores");
        row("  so at least, where it computes", read + shared - apart, read, "us", "8 B read, the target sleeps");
    }
    munmap(lines, sizeof *lines);
}
