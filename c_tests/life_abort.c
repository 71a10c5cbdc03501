/* Broken if this fails: llcl_abort of one rank does not end the whole job with its exit code.
 * ranks: 1 2 3
 * exit: 42
 */
#include "test.h"

static void run(llcl_context_t *context)
{
    uint64_t never = 0;
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (llcl_rank(context) == llcl_size(context) - 1)
        llcl_abort(context, 42);
    llcl_wait_word(context, &never, 1, -1);
    test_fail(__FILE__, __LINE__, "llcl_abort returned, or did not end the other ranks");
}

TEST_MAIN(run)
