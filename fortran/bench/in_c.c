/* The calls of calls.f90 as C makes them fastest: with a parameter struct that is set up before the
 * loop. At -O2 gcc clears a llcl_write_params_t by `rep stos`, which takes as long as the write.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <llcl.h>
#include <stdlib.h>

void write_in_c(llcl_context_t *context, void *number, llcl_remote_t here, int count)
{
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    params.destination = here;
    params.size = 8;
    for (int i = 0; i < count; i++) {
        params.source = llcl_local_address(number);
        if (llcl_write(context, &params) != LLCL_OK)
            abort();
    }
}

void read_in_c(llcl_context_t *context, void *number, llcl_remote_t here, int count)
{
    llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
    params.source = here;
    params.size = 8;
    for (int i = 0; i < count; i++) {
        params.destination = llcl_local_address(number);
        if (llcl_read(context, &params) != LLCL_OK)
            abort();
    }
}
