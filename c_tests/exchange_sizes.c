/* Broken if this fails: llcl_allgather_bytes loses, mixes or reorders contributions of some size,
 * or its own buffer is changed; or size 0 is no fence.
 * ranks: 1 2 3 5 8
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    static const size_t sizes[] = {1, 2, 8, 255, 4096, 49151, 49152, 49153, 100000};
    uint32_t me = llcl_rank(context), size = llcl_size(context), r;
    unsigned char *mine = malloc(100000), *all = malloc((size_t)size * 100000 + 1);
    size_t i;
    CHECK(mine && all);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        pattern_fill(mine, n, me + 10 * (uint32_t)i);
        memset(all, 0, size * n);
        all[size * n] = 0xee;
        CHECK_OK(llcl_allgather_bytes(context, mine, n, all));
        for (r = 0; r < size; r++)
            CHECK(pattern_holds(all + r * n, n, r + 10 * (uint32_t)i));
        CHECK(pattern_holds(mine, n, me + 10 * (uint32_t)i));
        CHECK_EQUAL(all[size * n], 0xee);
    }
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    CHECK_STATUS(llcl_allgather_bytes(NULL, NULL, 0, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 8, all), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_allgather_bytes(context, mine, 8, NULL), LLCL_ERR_INVALID);
    free(mine);
    free(all);
}

TEST_MAIN(run)
