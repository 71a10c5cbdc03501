/* Memory alone, for the limit of messages whose payload has a place outside of its slot: two
 * processes, each on a core of its own, hand payloads over in turn. A payload is copied into one of
 * PLACES places of a page and out of it; a line of its own tells the receiver. Prints half a round
 * trip in nanoseconds, as speed.c does.
 * raw_places PLACES BYTES CALLS */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repeats.h"

#define MOST 512 /* places and lines of a side */
#define PAGE 4096

struct line {
    _Alignas(64) _Atomic uint64_t round;
};
/* What one process reads and the other one writes. */
struct side {
    char places[MOST][PAGE];
    struct line lines[MOST];
};

/* Each process takes one of the cores that it may use. */
static void pin(int me) {
    cpu_set_t may, one;
    int number = 0;
    sched_getaffinity(0, sizeof may, &may);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &may) && number++ == me) {
            CPU_SET(core, &one);
        }
    }
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv) {
    static char source[PAGE], copy[PAGE];
    unsigned long places = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    long calls = argc > 3 ? atol(argv[3]) : 0;
    struct side *sides = mmap(NULL, 2 * sizeof *sides, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double ns[REPEATS];
    cpu_set_t may;
    sched_getaffinity(0, sizeof may, &may);
    if (sides == MAP_FAILED || places < 1 || places > MOST || size > PAGE || calls < 1 || CPU_COUNT(&may) < 2) {
        fprintf(stderr, "raw_places PLACES (1 to %d) BYTES (to %d) CALLS, on two cores\n", MOST, PAGE);
        return 1;
    }
    int me = fork() == 0;
    struct side *in = &sides[me], *out = &sides[!me];
    uint64_t number = 0;
    pin(me);
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        for (long call = 0; call < calls; call++, number++) {
            /* Descending, as the library's places: a core that reads also fetches lines behind. */
            uint64_t place = places - 1 - number % places, line = number % MOST, round = number / MOST + 1;
            for (int turn = 0; turn < 2; turn++) {
                if (turn == me) {
                    memcpy(out->places[place], source, size);
                    atomic_store_explicit(&out->lines[line].round, round, memory_order_release);
                } else {
                    while (atomic_load_explicit(&in->lines[line].round, memory_order_acquire) != round) {
                    }
                    memcpy(copy, in->places[place], size);
                    __asm__ volatile("" : : "r"(copy) : "memory"); /* nobody else reads the copy */
                }
            }
        }
        ns[i] = (now() - start) / (double)calls / 2;
    }
    if (me == 0) {
        printf("half_round_trip conduit=none places=%lu bytes=%zu", places, size);
        print_repeats(ns);
        wait(NULL);
    }
    return 0;
}
