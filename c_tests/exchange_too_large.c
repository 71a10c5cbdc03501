/* A size that is too large to gather is refused with a message, in a world of any size; if only one
 * rank gives it, the others are told that sizes differ. If this were broken, the process would
 * abort, or the others would wait.
 * ranks: 1 2 3
 * modes: auto
 * threads: yes */
#include "test.h"

static void run(llcl_context_t *context)
{
    static const size_t sizes[] = {(size_t)-1, (size_t)1 << 63, (size_t)1 << 62, (size_t)1 << 40,
                                   ((size_t)1 << 30) + 1};
    uint32_t ranks = llcl_size(context), me = llcl_rank(context);
    uint64_t mine = me, all[8];
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK_STATUS(llcl_allgather_bytes(context, &mine, sizes[i], all), LLCL_ERR_RANGE);
        CHECK(strstr(llcl_last_error(), "size is ") != NULL);
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
        CHECK_EQUAL(all[ranks - 1], ranks - 1);
        if (ranks > 1) {
            CHECK_STATUS(llcl_allgather_bytes(context, &mine, me == 1 ? sizes[i] : 8, all),
                         LLCL_ERR_INVALID);
            CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
        }
    }
}

TEST_MAIN(run)
