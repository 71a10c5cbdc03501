/* Broken if this fails: a second llcl_init from the same environment makes a second rank of the
 * same number, while the first lives or after it has left the world.
 * ranks: 1 2
 * modes: auto
 */
#include "test.h"

int main(void)
{
    llcl_context_t *context = NULL, *second = NULL;
    CHECK_OK(llcl_init(NULL, &context));
    test_rank = llcl_rank(context);
    CHECK_STATUS(llcl_init(NULL, &second), LLCL_ERR_STATE);
    CHECK(second == NULL);
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    CHECK_OK(llcl_finalize(context));
    CHECK_STATUS(llcl_init(NULL, &second), LLCL_ERR_STATE);
    CHECK(second == NULL);
    return 0;
}
