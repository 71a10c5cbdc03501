/* A size that is too large to gather is refused with a message, in a world of any size, as NULL is.
 * If only one rank gives it, it learns why, and the others are told that sizes differ; it does not
 * wait for them longer than it may. If this were broken, the process would abort, the others would
 * wait, or a time-out would have no effect.
 * ranks: 1 2 3
 * modes: auto
 * threads: yes */
#include "test.h"

/* Rank 0 comes alone with what is refused; the others come when its time is over. */
static void in_time(llcl_context_t *context, uint32_t me)
{
    const size_t size = (size_t)1 << 40;
    uint64_t mine = me, all[8];
    if (me == 0) {
        CHECK_STATUS(llcl_allgather_bytes_within(context, &mine, size, all, 1000000), LLCL_ERR_TIMEOUT);
        CHECK_STATUS(llcl_allgather_bytes_within(context, &mine, size, all, 0), LLCL_ERR_TIMEOUT);
        CHECK_STATUS(llcl_allgather_bytes(context, &mine, 8, all), LLCL_ERR_STATE);
    }
    CHECK_OK(llcl_barrier(context));
    CHECK_STATUS(llcl_allgather_bytes(context, &mine, me == 0 ? size : 8, all),
                 me == 0 ? LLCL_ERR_RANGE : LLCL_ERR_INVALID);
    if (me == 0)
        CHECK_STATUS(llcl_allgather_bytes_within(context, NULL, 8, all, 1000000), LLCL_ERR_TIMEOUT);
    CHECK_OK(llcl_barrier(context));
    CHECK_STATUS(llcl_allgather_bytes(context, &mine, 8, all), LLCL_ERR_INVALID);
    CHECK_OK(llcl_allgather_bytes(context, &mine, 8, all));
    CHECK_EQUAL(all[1], 1);
    if (me == 0) {
        CHECK_STATUS(llcl_allgather_bytes_within(context, &mine, 8, all, 1000000), LLCL_ERR_TIMEOUT);
        CHECK_STATUS(llcl_allgather_bytes(context, NULL, 8, all), LLCL_ERR_STATE);
    }
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_allgather_bytes(context, &mine, 8, all));
}

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
                         me == 1 ? LLCL_ERR_RANGE : LLCL_ERR_INVALID);
            CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
            CHECK_STATUS(llcl_allgather_bytes(context, me == 1 ? NULL : &mine, 8, all), LLCL_ERR_INVALID);
            CHECK(strstr(llcl_last_error(), me == 1 ? "mine is NULL" : "same size") != NULL);
            CHECK_STATUS(llcl_allgather_bytes(context, &mine, 8, me == 1 ? NULL : all), LLCL_ERR_INVALID);
            CHECK(strstr(llcl_last_error(), me == 1 ? "all is NULL" : "same size") != NULL);
        }
    }
    if (ranks > 1)
        in_time(context, me);
}

TEST_MAIN(run)
