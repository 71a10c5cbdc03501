/* Broken if this fails: llcl_abort(context, 0) does not end the whole job, or not with exit code 0.
 * ranks: 1 3
 * modes: auto
 * exit: 0
 */
#include "test.h"

static void run(llcl_context_t *context)
{
    uint64_t never = 0;
    CHECK_OK(llcl_barrier(context));
    if (llcl_rank(context) == llcl_size(context) - 1)
        llcl_abort(context, 0);
    llcl_wait_word(context, &never, 1, TEST_PATIENCE_NS);
    test_fail(__FILE__, __LINE__, "llcl_abort returned, or did not end the other ranks");
}

TEST_MAIN(run)
