/* The loop that measures collectives: of this library, of an MPI, or of bare loads and stores. It
 * uses none of them, so one code measures all. */
#ifndef LLCL_BENCH_COLL_LOOP_H
#define LLCL_BENCH_COLL_LOOP_H

#include "bench.h"

#define LOOP_MOST_RANKS 256

/* Zeroed memory that all ranks map: for each rank a cache line, which it alone writes. */
typedef struct loop_shared {
    struct {
        uint64_t rounds __attribute__((aligned(2 * BENCH_LINE)));
    } of[LOOP_MOST_RANKS];
} loop_shared_t;

/* The ranks that take part, and their means to agree on a measurement. */
typedef struct loop_world {
    uint32_t rank, size;
    void (*gather)(void *self, const void *mine, size_t size, void *all); /* an allgather */
    void *self;
    loop_shared_t *shared;
    uint64_t met;    /* the number of loop_meet() calls */
    int shared_core; /* the main threads of all ranks are on one core */
    unsigned turns;  /* in how many turns they do the work of a round there; 0: without turns */
} loop_world_t;

/* Collective, before `shared` is set: zeroed memory of the machine that all ranks map, also those
 * of several nodes that LLCL_NODE_ID or namespaces make of the machine. */
void *loop_common(const loop_world_t *world, size_t bytes);

/* A barrier by bare loads and stores, in which no rank sleeps: each rank writes its line and waits
 * for the others'. With two ranks on two cores it is the exchange of two cache lines, the least
 * that any barrier can cost. */
void loop_meet(loop_world_t *world);

/* One collective in one form. */
typedef struct loop_form {
    void (*start)(void *self); /* NULL: a blocking form, which is `wait` alone */
    void (*wait)(void *self);
    void *self;
} loop_form_t;

/* The figures of the slowest rank, in ns. "Middle" is the mean of the middle half, because the
 * clock may tick in steps of 10 ns. */
typedef struct loop_result {
    double start;  /* the middle of t1 - t0, which the caller pays before it can compute; LOOP_ALONE only */
    double middle; /* the middle of a round (start, work, wait); LOOP_ROUNDS reads the clock once for a batch of rounds */
    double mean;   /* the time of all rounds divided by their number */
    double p99;    /* LOOP_ALONE only */
    unsigned rounds;
} loop_result_t;

/* LOOP_ROUNDS: rounds follow each other in a loop, in which a root may be ahead of the others.
 * LOOP_ALONE: the ranks meet before each round, and the meeting is not timed. LOOP_WHOLE: the
 * meeting is timed as well. */
typedef enum loop_kind { LOOP_ROUNDS, LOOP_ALONE, LOOP_WHOLE } loop_kind_t;

/* Collective. Runs rounds of start, work and wait, as many as fit in `budget_ms` but at least five.
 * `form` NULL: work alone. `work`: how long each rank computes between start and wait (loop_work);
 * 0: not at all. */
loop_result_t loop_run(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work, double budget_ms);

/* Collective: runs one more round, whose result the caller checks. */
void loop_once(loop_world_t *world, const loop_form_t *form);

/* The figure for one round, in ns. If ranks share cores it is the mean: a rank then waits for its
 * next time slice in some rounds and not at all in the others, which no median shows. */
double loop_total(const loop_world_t *world, const loop_result_t *result);

/* LOOP_IN_TURNS is half load: the main threads of both ranks share one core, so each computes at
 * half its speed, and the library's threads have the other core. The main threads take turns
 * several times in a round. LOOP_LEFT_TO_KERNEL: they share a core without turns. The kernel lets a
 * thread run for milliseconds, so one rank starts a short round only when the other one has done
 * all of its work, and the work hides nothing. LOOP_ALL_BUSY: each computes on a core of its
 * own. */
typedef enum loop_cores { LOOP_IN_TURNS, LOOP_LEFT_TO_KERNEL, LOOP_ALL_BUSY } loop_cores_t;

/* The figures of the slowest rank, in ns. */
typedef struct loop_overlap {
    double pure;    /* start and wait without work between them */
    double compute; /* the work alone */
    double total;   /* start, the work, wait */
    double percent; /* how much of `pure` the work hides: 100 (1 - (total - compute) / pure); noise may exceed 0 to 100 */
} loop_overlap_t;

/* Collective, two ranks. Overlap as the OSU non-blocking tests define it, with as much work as the
 * collective takes alone. No main thread is in the library between start and wait. If the main
 * threads share a core, a rank's own round says nothing, since the other one computes while it
 * waits. Then all times are those of whole rounds of both ranks with the meeting before them, and
 * the time of a meeting is subtracted from `pure`. With turns the work is reduced by their cost, so
 * that both ranks have done it after twice `pure`, and the library has no more time than that for
 * its progress. */
loop_overlap_t loop_overlap(loop_world_t *world, const loop_form_t *form, loop_cores_t cores, double budget_ms);

/* Does the computation that takes `ns` on a core of its own. Interruptions and other threads on the
 * core make it longer, so the elapsed time shows them. */
void loop_work(double ns);

/* Pins the thread if each rank has a core of its own; otherwise the kernel may move ranks. */
void loop_place(uint32_t rank, uint32_t size);

#endif
