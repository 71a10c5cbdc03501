/* The option --mode as LLCL_EXECUTION_*. Not in bench.h, which uses nothing of the library. */
#ifndef LLCL_BENCH_EXECUTION_H
#define LLCL_BENCH_EXECUTION_H

#include "bench.h"
#include "llcl.h"

#include <string.h>

static inline uint32_t bench_execution(const char *mode)
{
    if (mode == NULL)
        return LLCL_EXECUTION_FROM_ENVIRONMENT;
    if (strcmp(mode, "auto") == 0)
        return LLCL_EXECUTION_AUTO;
    if (strcmp(mode, "offload") == 0)
        return LLCL_EXECUTION_OFFLOAD;
    if (strcmp(mode, "direct") == 0)
        return LLCL_EXECUTION_DIRECT;
    bench_die("--mode is '%s', expected auto, offload or direct", mode);
}

#endif
