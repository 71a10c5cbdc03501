/* A program without MPI that mpirun has started: through the module its ranks become one world.
 * Each rank adds to a word of rank 0. With the argument exit the last rank ends the job with
 * code 7; with at_once each rank ends without exit handlers, as conduits do. */
#include <llcl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t all[16];
    LLCL_CHECK(llcl_init(NULL, &context));
    LLCL_CHECK(llcl_region_allocate_shared(context, 8, &region, all));
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    add.target = all[0];
    add.operand = llcl_rank(context) + 1;
    LLCL_CHECK(llcl_fetch_add(context, &add));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        if (llcl_rank(context) == llcl_size(context) - 1)
            llcl_exit(context, 7, 500);
        for (;;)
            pause();
    }
    if (llcl_rank(context) == 0)
        printf("plain: %u ranks, sum %llu\n", llcl_size(context), *(unsigned long long *)llcl_region_address(region));
    LLCL_CHECK(llcl_finalize(context));
    if (argc > 1) {
        fflush(NULL);
        _exit(0);
    }
    return 0;
}
