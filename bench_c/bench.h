/* Timing, statistics, options and self-describing records of the microbenchmarks.
   Knows nothing of the library, so that the raw limits can be measured without it. */
#ifndef LLCL_BENCH_H
#define LLCL_BENCH_H

#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

#define BENCH_LINE 64          /* bytes of a cache line */
#define BENCH_MAX_REPEATS 64

/* ---- clock ---- */

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The processor's own counter where there is one (get_clock of the paper's listings), else nanoseconds.
   Not serialising: what is timed is what a caller in the middle of its own work would see. */
static inline uint64_t bench_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("" ::: "memory");
#if defined(__x86_64__) || defined(__i386__)
    ticks = __rdtsc();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#else
    ticks = bench_now_ns();
#endif
    __asm__ volatile("" ::: "memory");
    return ticks;
}

double bench_ticks_per_ns(void); /* calibrated at the first call against CLOCK_MONOTONIC */

/* ---- waiting ---- */

static inline void bench_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* One step of a polite spin: `limit` pauses, then the core is offered to someone else. */
static inline void bench_relax(unsigned *spins, unsigned limit)
{
    if (++*spins < limit) {
        bench_pause();
    } else {
        *spins = 0;
        sched_yield();
    }
}

void bench_sleep_us(unsigned microseconds);

/* ---- statistics ---- */

double bench_percentile(double *values, size_t count, double percent); /* sorts `values` */

/* Results of the repeats of one measurement, each with the limit measured right before it. */
typedef struct bench_series {
    int repeats;
    double ours[BENCH_MAX_REPEATS];
    double limit[BENCH_MAX_REPEATS]; /* NAN: none */
    double p99[BENCH_MAX_REPEATS];   /* NAN: none */
} bench_series_t;

void bench_add(bench_series_t *series, double limit, double ours, double p99);
double bench_median(const bench_series_t *series);            /* of `ours` */
int bench_best(const bench_series_t *series, int how_many);   /* which has the highest median */

/* ---- options ---- */

typedef struct bench_options {
    const char *program;
    const char *mode;  /* auto, offload, direct; NULL: what the environment says */
    const char *csv;   /* NULL: no file */
    int quick;
    int pin;
    int repeats;
    int alone;         /* `memory` only: print what a world of one takes, and nothing else */
    double against;    /* `memory` only: own KiB of a rank in a world of two, 0: unknown */
    const char *policy; /* `incast` only: LLCL_AM_POLICY; NULL: what the environment says */
    double hottest;    /* `incast` only: changes of its one counter per message under `acquire`, 0: unknown */
    const char *peers; /* `coll` and `overlap` only: command that measures the machine's MPIs, see peers/start; NULL: none */
    const char *only;  /* `coll` only: operations, with commas between them; NULL: all */
    int continued;     /* the table has been begun by an earlier run: no title */
    int show;          /* 1: this process prints; 0: it is a passive rank */
} bench_options_t;

/* Parses the command line; ends the program on a wrong one and after --help. */
bench_options_t bench_parse(int argc, char **argv, const char *what);

/* ---- records ---- */

typedef struct bench_record {
    const char *what;       /* the case; no comma in it */
    const char *unit;       /* of median, quartiles, p99 and limit */
    const char *limit_name; /* what the limit is; NULL: no limit */
    const char *target;     /* "ratio<=3", "value>=100", ...; NULL: nothing asked for */
    int ranks;
    int threads;
    size_t size;
    uint64_t count;         /* operations in one repeat */
    int file_only;          /* not in the table: the benchmark prints one of its own */
    bench_series_t series;
} bench_record_t;

/* Name of the execution mode in force, for the records. */
void bench_set_mode(const char *mode);
/* Title and header of the table; opens the CSV file (appended to; the header line only when it is empty). */
void bench_begin(const bench_options_t *options, const char *title);
void bench_emit(const bench_record_t *record);
void bench_note(const char *text); /* one line of explanation under the table */
void bench_end(void);

/* ---- placement ---- */

int bench_cores(void);      /* processors that this process may use, as it was started */
void bench_pin(int nth);    /* this thread to the nth (modulo) of them */
void bench_unpin(void);     /* this thread to all of them */
/* From the main thread: all other threads of the process, those of the library, to the nth of them; negative: to all. */
void bench_pin_others(int nth);

void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
