/* Memory and descriptors of this process. */
#ifndef LLCL_BENCH_RESIDENT_H
#define LLCL_BENCH_RESIDENT_H

typedef struct resident {
    double all; /* KiB */
    double own; /* KiB, without unchanged pages of the program's and the libraries' files */
} resident_t;

/* From /proc/self/smaps, which counts pages exactly. */
resident_t resident(void);

/* The kernel's counts for this process. `own_kib` includes page tables. `private_kib` is the part
 * of it that is in no memory file, neither this rank's nor a peer's. */
typedef struct usage {
    double descriptors, mappings, address_kib, own_kib, private_kib;
} usage_t;

usage_t usage(void);

#endif
