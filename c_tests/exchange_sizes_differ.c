/* Broken if this fails: ranks that pass different sizes hang or read each other's bytes out of
 * place, instead of LLCL_ERR_INVALID on every rank; or the world is unusable afterwards.
 * ranks: 2 3
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    unsigned char mine[64] = {0}, all[64 * 8];
    uint32_t me = llcl_rank(context), size = llcl_size(context), all_ranks[64], r;
    CHECK_STATUS(llcl_allgather_bytes(context, mine, me == 0 ? 8 : 16, all), LLCL_ERR_INVALID);
    CHECK_OK(llcl_allgather_bytes(context, &me, sizeof me, all_ranks));
    for (r = 0; r < size; r++)
        CHECK_EQUAL(all_ranks[r], r);
}

TEST_MAIN(run)
