/* Broken if this fails: llcl_region_allocate_shared gives a rank another address than where a
 * region is, answers ranks differently when one of them is refused, or keeps a region of a call
 * that failed; or llcl_at gives a wrong address.
 * ranks: 1 3
 * threads: yes
 */
#include "test.h"

static void every_rank_finds_every_region(llcl_context_t *context)
{
    uint32_t rank = llcl_rank(context), size = llcl_size(context), r;
    llcl_remote_t remotes[8];
    llcl_region_t *region = NULL;
    llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
    uint64_t *words;
    CHECK_OK(llcl_region_allocate_shared(context, 8 * (size + rank), &region, remotes));
    CHECK_EQUAL(llcl_region_size(region), 8 * (size + rank));
    words = llcl_region_address(region);
    for (r = 0; r < size; r++) {
        out.peer = r;
        out.destination = llcl_at(remotes[r], 8 * rank);
        out.value = 100 * rank + r + 1;
        out.size = 8;
        CHECK_OK(llcl_write_value(context, &out));
    }
    CHECK_OK(llcl_barrier(context));
    for (r = 0; r < size; r++)
        CHECK_EQUAL(word_get(&words[r]), 100 * r + rank + 1);
    CHECK_EQUAL(llcl_at(remotes[0], UINT64_MAX).offset, remotes[0].offset - 1);
    CHECK_EQUAL(llcl_at(remotes[0], 16).key, remotes[0].key);
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_region_free(region));
}

static void one_refused_refuses_all(llcl_context_t *context)
{
    uint32_t rank = llcl_rank(context), last = llcl_size(context) - 1, round;
    llcl_remote_t remotes[8], untouched = {77, 77};
    llcl_region_t *region = NULL;
    remotes[0] = untouched;
    /* More often than a context has regions: none may be left behind. */
    for (round = 0; round < 40; round++) {
        size_t size = rank == last && round % 3 == 0 ? 0 : rank == last && round % 3 == 1 ? SIZE_MAX / 2 : 4096;
        llcl_region_t **place = rank == last && round % 3 == 2 ? NULL : &region;
        llcl_status_t expected = round % 3 == 1 ? LLCL_ERR_NO_MEMORY : LLCL_ERR_INVALID;
        CHECK_STATUS(llcl_region_allocate_shared(context, size, place, remotes), expected);
        CHECK(region == NULL && remotes[0].key == 77);
        CHECK(rank == last || strstr(llcl_last_error(), "rank") != NULL);
    }
    CHECK_STATUS(llcl_region_allocate_shared(NULL, 8, &region, remotes), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_barrier(NULL), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    every_rank_finds_every_region(context);
    one_refused_refuses_all(context);
    every_rank_finds_every_region(context);
}

static void configure(llcl_config_t *config)
{
    config->regions = 16;
}

TEST_MAIN_CONFIG(run, configure)
