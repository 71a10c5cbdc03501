/* Timing, statistics, options and self-describing records of the microbenchmarks. Uses nothing of
 * the library, so that programs without it can measure the limits. */
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

/* The processor's time-stamp counter (get_clock of the paper's listings), or nanoseconds if it has
 * none. The read does not serialise, so the time is what a caller in the middle of its own work
 * would see. */
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

/* One step of a spin: a pause, and after `limit` pauses a yield. */
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

/* The results of a measurement's repeats, each with the limit that was measured right before it. */
typedef struct bench_series {
    int repeats;
    double ours[BENCH_MAX_REPEATS];
    double limit[BENCH_MAX_REPEATS]; /* NAN: no limit */
    double p99[BENCH_MAX_REPEATS];   /* NAN: no percentile */
} bench_series_t;

void bench_add(bench_series_t *series, double limit, double ours, double p99);
double bench_median(const bench_series_t *series);            /* the median of `ours` */
int bench_best(const bench_series_t *series, int how_many);   /* the index of the series with the highest median */

/* ---- options ---- */

typedef struct bench_options {
    const char *program;
    const char *mode;  /* auto, offload, direct; NULL: that of the environment */
    const char *csv;   /* NULL: no file */
    int quick;
    int pin;
    int repeats;
    int alone;         /* `memory`: print only the memory of a world of one rank */
    double against;    /* `memory`: a rank's own KiB in a world of two, 0: unknown */
    const char *policy; /* `incast`: LLCL_AM_POLICY; NULL: that of the environment */
    double hottest;    /* `incast`: changes of the counter of `acquire` per message, 0: unknown */
    const char *peers; /* `coll`, `overlap`: the command that measures the machine's MPIs (peers/start); NULL: none */
    const char *only;  /* `coll`: operations, separated by commas; NULL: all */
    int chosen;        /* `coll`: only what the library chooses by itself, and once */
    int continued;     /* an earlier run has begun the table, so no title is printed */
    int show;          /* 1: this process prints; 0: it is a passive rank */
} bench_options_t;

/* Parses the command line. Ends the program if it is wrong, and after --help. */
bench_options_t bench_parse(int argc, char **argv, const char *what);

/* ---- records ---- */

typedef struct bench_record {
    const char *what;       /* the case, without commas */
    const char *unit;       /* the unit of median, quartiles, p99 and limit */
    const char *limit_name; /* NULL: no limit */
    const char *target;     /* "ratio<=3", "value>=100", ...; NULL: no target */
    int ranks;
    int threads;
    size_t size;
    uint64_t count;         /* operations in one repeat */
    int file_only;          /* for the CSV file only: the benchmark prints a table of its own */
    bench_series_t series;
} bench_record_t;

/* Sets the name of the execution mode in the records. */
void bench_set_mode(const char *mode);
/* Prints title and header of the table. Opens the CSV file for appending, and writes its header
 * line if it is empty. */
void bench_begin(const bench_options_t *options, const char *title);
void bench_emit(const bench_record_t *record);
void bench_note(const char *text); /* one line of explanation under the table */
void bench_end(void);

/* ---- placement ---- */

int bench_cores(void);      /* the number of processors that this process could use at its start */
void bench_pin(int nth);    /* pins this thread to the nth (modulo) of them */
void bench_unpin(void);     /* lets this thread run on all of them */
/* Called by the main thread: pins all other threads of the process, which are the library's, to the
 * nth of them, or lets them run on all if `nth` is negative. */
void bench_pin_others(int nth);

void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
