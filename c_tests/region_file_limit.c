/* Broken if this fails: under a limit of file sizes (ulimit -f) llcl_init or llcl_region_allocate
 * ends the process by SIGXFSZ instead of answering LLCL_ERR_NO_MEMORY and naming the limit; memory
 * of freed regions is not used again, so that a program which allocates and frees comes to the
 * limit; or memory that is used again does not read as zero.
 * kind: alone
 * modes: auto
 */
#include "test.h"

#define MIB (1 << 20)
#define LIMIT (64 * MIB)
#define MOST 64

static llcl_context_t *context;

/* Every page is used, and was zero. */
static llcl_region_t *allocate(size_t size, llcl_status_t *status)
{
    llcl_region_t *region = NULL;
    *status = llcl_region_allocate(context, size, 0, &region);
    if (*status == LLCL_OK) {
        unsigned char *bytes = llcl_region_address(region);
        size_t i;
        for (i = 0; i < size; i += 4096) {
            CHECK_EQUAL(bytes[i], 0);
            bytes[i] = 77;
        }
    }
    return region;
}

static uint32_t fill(llcl_region_t **regions, size_t size)
{
    llcl_status_t status = LLCL_OK;
    uint32_t count = 0;
    while (count < MOST && status == LLCL_OK) {
        regions[count] = allocate(size, &status);
        count += status == LLCL_OK;
    }
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    CHECK(strstr(llcl_last_error(), "RLIMIT_FSIZE") != NULL);
    return count;
}

static void drop(llcl_region_t **regions, uint32_t count, uint32_t first, uint32_t step)
{
    uint32_t i;
    for (i = first; i < count; i += step)
        CHECK_OK(llcl_region_free(regions[i]));
}

int main(void)
{
    llcl_region_t *regions[MOST], *halves[MOST], *all;
    uint32_t count, again, i;
    llcl_status_t status;
    test_limit_files(MIB / 2);
    CHECK_STATUS(llcl_init(NULL, &context), LLCL_ERR_NO_MEMORY);
    CHECK(strstr(llcl_last_error(), "RLIMIT_FSIZE") != NULL);
    test_limit_files(LIMIT);
    CHECK_OK(llcl_init(NULL, &context));
    for (i = 0; i < 300; i++) {
        all = allocate((size_t)(i % 3 + 1) * MIB, &status);
        CHECK_OK(status);
        CHECK_OK(llcl_region_free(all));
    }
    count = fill(regions, 4 * MIB);
    CHECK(count >= 8);
    /* Each second place is free: two halves fit into it, and nothing that is larger. */
    drop(regions, count, 0, 2);
    again = fill(halves, 2 * MIB);
    CHECK(again >= (count + 1) / 2 * 2);
    drop(halves, again, 0, 1);
    drop(regions, count, 1, 2);
    /* All of it in one piece. */
    all = allocate((size_t)count * 4 * MIB, &status);
    CHECK_OK(status);
    CHECK_OK(llcl_region_free(all));
    CHECK_OK(llcl_finalize(context));
    return 0;
}
