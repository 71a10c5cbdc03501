/* llcl_init is refused at one rank, whose setting is wrong, and so at all; then a second call
 * succeeds. MPI cannot be initialised twice, so the module must not finalise it in between. Without
 * arguments the program ends after the refusals. */
#include "expect.h"
#include <stdlib.h>

static int number_of_this_rank(void)
{
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    return atoi(number ? number : getenv("PMI_RANK"));
}

int main(int argc, char **argv)
{
    llcl_context_t *context;
    (void)argv;
    rank = number_of_this_rank();
    for (int wrong = 0; wrong < 2; wrong++) {
        if (rank == wrong)
            setenv("LLCL_SPIN_US", "many", 1);
        EXPECT(llcl_init(NULL, &context) < 0);
        unsetenv("LLCL_SPIN_US");
    }
    if (argc > 1) {
        LLCL_CHECK(llcl_init(NULL, &context));
        EXPECT(llcl_size(context) == 2 && (int)llcl_rank(context) == rank);
        LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
        LLCL_CHECK(llcl_finalize(context));
    }
    printf("again: rank %d has ended\n", rank);
    return 0;
}
