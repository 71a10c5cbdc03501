/* What this process takes of memory and of descriptors. */
#ifndef LLCL_BENCH_RESIDENT_H
#define LLCL_BENCH_RESIDENT_H

typedef struct resident {
    double all; /* KiB */
    double own; /* KiB, without the pages of program and libraries that merely reflect their files */
} resident_t;

/* From /proc/self/smaps, which counts pages exactly. */
resident_t resident(void);

/* What the kernel counts of this process. With page tables: `own_kib`, and of it `private_kib`, which is no page of any
   memory file, its own or a peer's. */
typedef struct usage {
    double descriptors, mappings, address_kib, own_kib, private_kib;
} usage_t;

usage_t usage(void);

#endif
