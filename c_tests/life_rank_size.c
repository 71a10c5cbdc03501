/* Broken if this fails: ranks are not 0..size-1, each once, or ranks disagree about the size.
 * ranks: 1 2 3 5 8
 * threads: yes
 */
#include "test.h"

static void run(llcl_context_t *context)
{
    uint32_t mine[2], all[64][2], r;
    const char *size = getenv("LLCL_SIZE"), *rank = getenv("LLCL_RANK");
    mine[0] = llcl_rank(context);
    mine[1] = llcl_size(context);
    CHECK(mine[1] >= 1 && mine[1] <= 64);
    if (!test_in_threads() && size && rank) {
        CHECK_EQUAL(mine[0], atoi(rank));
        CHECK_EQUAL(mine[1], atoi(size));
    }
    CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
    for (r = 0; r < mine[1]; r++) {
        CHECK_EQUAL(all[r][0], r);
        CHECK_EQUAL(all[r][1], mine[1]);
    }
}

TEST_MAIN(run)
