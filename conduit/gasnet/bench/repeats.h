/* Repeats of a measurement: the clock, and the end of the line that shows them. */
#ifndef REPEATS_H
#define REPEATS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPEATS 9

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the values, and prints their median and quartiles. */
static inline void print_repeats(double ns[REPEATS]) {
    qsort(ns, REPEATS, sizeof *ns, compare);
    printf(" median_ns=%.1f q1_ns=%.1f q3_ns=%.1f\n", ns[REPEATS / 2], ns[REPEATS / 4], ns[REPEATS * 3 / 4]);
    fflush(stdout);
}

#endif
