/* Plain C functions that check the bounds and do the work. The library's path to mapped memory is
 * compared with them. They have a translation unit of their own, so that each costs a call, as the
 * library does. */
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

/* Returns 0, or -1 if the access is out of bounds or the target of a fetch-add is not aligned. */
int plain_write(const plain_params_t *params);
int plain_read(const plain_params_t *params);
int plain_fetch_add(const plain_params_t *params);

#endif
