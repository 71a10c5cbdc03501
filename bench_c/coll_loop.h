/* The loop by which collectives are measured, of this library, of an MPI, or of bare loads and stores. Knows none of
   them, so that all are measured by the same code. */
#ifndef LLCL_BENCH_COLL_LOOP_H
#define LLCL_BENCH_COLL_LOOP_H

#include "bench.h"

#define LOOP_MOST_RANKS 256

/* Zeroed memory that all ranks map: a line for each, which nobody else writes. */
typedef struct loop_shared {
    struct {
        uint64_t rounds __attribute__((aligned(2 * BENCH_LINE)));
    } of[LOOP_MOST_RANKS];
} loop_shared_t;

/* The ranks that take part, and how they agree about the measurement itself. */
typedef struct loop_world {
    uint32_t rank, size;
    void (*gather)(void *self, const void *mine, size_t size, void *all); /* of all ranks, at all ranks */
    void *self;
    loop_shared_t *shared;
    uint64_t met;    /* how often */
    int shared_core; /* the main threads of all ranks are on one core */
    unsigned turns;  /* in how many turns they do the work of a round there; 0: all at once */
} loop_world_t;

/* A barrier by bare loads and stores, which leaves nobody asleep: each rank writes its line and waits for the others'. Of two ranks
   on two cores it is the exchange of two cache lines, the least that any barrier can cost. */
void loop_meet(loop_world_t *world);

/* One collective in one form. */
typedef struct loop_form {
    void (*start)(void *self); /* NULL: a blocking form, all of it is in `wait` */
    void (*wait)(void *self);
    void *self;
} loop_form_t;

/* Of the slowest rank each, ns. The clock may tick in steps of 10 ns: "middle" is the mean of the middle half. */
typedef struct loop_result {
    double start;  /* middle of t1 - t0: what the caller pays before it may compute; LOOP_ALONE only */
    double middle; /* of one round: start, work and wait; of LOOP_ROUNDS by batches of rounds without a clock in them */
    double mean;   /* time of all rounds by their number */
    double p99;    /* LOOP_ALONE only */
    unsigned rounds;
} loop_result_t;

/* How rounds follow each other: in a loop, as a program with nothing else to do would run them, in which a root may be ahead
   of the others; or each alone: the ranks meet before each, which is not timed (LOOP_ALONE) or timed as well (LOOP_WHOLE). */
typedef enum loop_kind { LOOP_ROUNDS, LOOP_ALONE, LOOP_WHOLE } loop_kind_t;

/* Collective. Rounds of start, work and wait, as many as fit in `budget_ms`, but at least five. `form` NULL: the work alone.
   `work`: what each rank computes between start and wait, see loop_work; 0: nothing. */
loop_result_t loop_run(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work, double budget_ms);

/* Collective: one more round, for a caller that looks at its result. */
void loop_once(loop_world_t *world, const loop_form_t *form);

/* The figure for one round, ns. Where ranks share cores it is the mean: a rank then waits in one round for its next turn and
   not at all in the others, which no median shows. */
double loop_total(const loop_world_t *world, const loop_result_t *result);

/* Half load: the main threads of both ranks share one core, so that each computes at half its speed, and the other core is there for
   progress: the library's threads are placed on it. They take turns several times in a round: the kernel lets one run
   for milliseconds, so that of two ranks the one would start a short round only when the other one has done all of its work, and
   nothing could be hidden behind that; which is what they do where it is left to the kernel. Else each computes on a core of its own, all the time. */
typedef enum loop_cores { LOOP_IN_TURNS, LOOP_LEFT_TO_KERNEL, LOOP_ALL_BUSY } loop_cores_t;

/* Of the slowest rank each, ns. */
typedef struct loop_overlap {
    double pure;    /* start and wait, nothing between them */
    double compute; /* the work alone */
    double total;   /* start, the work, wait */
    double percent; /* how much of `pure` the work has hidden: 100 (1 - (total - compute) / pure); noise may lead out of 0 to 100 */
} loop_overlap_t;

/* Collective, two ranks. As the OSU non-blocking tests define it, with as much work as the collective takes alone. No main thread
   is in the library between start and wait. Where the main threads share a core, a rank's own round says nothing, since the other
   one computes while it waits: there all times are those of whole rounds of both, with the meeting before them, and `pure` is
   without that of a meeting. Where they take turns the work is so much less as these cost, as far as it goes: so both have done it after
   twice `pure`, and what makes progress has no more time than that. */
loop_overlap_t loop_overlap(loop_world_t *world, const loop_form_t *form, loop_cores_t cores, double budget_ms);

/* Computes for so long as `ns` takes on a core of one's own. Interruptions and other threads make it longer: who computes less
   because somebody else uses the core is seen in the time that it takes. */
void loop_work(double ns);

/* Pins where each rank has a core of its own; otherwise the kernel may move ranks. */
void loop_place(uint32_t rank, uint32_t size);

#endif
