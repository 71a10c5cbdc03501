/* What a good C programmer writes where no library is needed: check the bounds, do the work. The measure for the
   library's mapped path. In a translation unit of its own, so that it costs a call as the library does. */
#ifndef LLCL_PLAIN_H
#define LLCL_PLAIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct plain_region {
    char *base;
    size_t size;
} plain_region_t;

typedef struct plain_params {
    const plain_region_t *local, *remote;
    size_t local_offset, remote_offset;
    size_t size;
    uint64_t operand; /* fetch-add: `local` receives the old value */
} plain_params_t;

/* 0, or -1 where the bounds are left (or, fetch-add, the target is not aligned). */
int plain_write(const plain_params_t *params);
int plain_read(const plain_params_t *params);
int plain_fetch_add(const plain_params_t *params);

#endif
