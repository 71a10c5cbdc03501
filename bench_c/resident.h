/* Resident memory of this process. */
#ifndef LLCL_BENCH_RESIDENT_H
#define LLCL_BENCH_RESIDENT_H

typedef struct resident {
    double all; /* KiB */
    double own; /* KiB, without the pages of program and libraries that merely reflect their files */
} resident_t;

/* From /proc/self/smaps, which counts pages exactly. */
resident_t resident(void);

#endif
