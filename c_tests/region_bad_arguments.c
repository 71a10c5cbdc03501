/* Broken if this fails: the calls of the memory chapter crash on, or accept, what they should
 * refuse; or write their out-parameter although they failed.
 * ranks: 1 2
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    llcl_region_t *const untouched = (llcl_region_t *)0x10;
    llcl_region_t *region = untouched;
    unsigned char memory[64];
    llcl_local_t local;
    llcl_remote_t remote;
    CHECK_STATUS(llcl_region_allocate(NULL, 64, 0, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_allocate(context, 64, 0, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_allocate(context, 64, 3, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_allocate(context, 64, 0x80000000u, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_register(NULL, memory, 64, 0, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_register(context, memory, 64, 0, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_register(context, NULL, 64, 0, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_register(context, memory, 64, 2, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_allocate(context, 0, 0, &region), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_register(context, memory, 0, 0, &region), LLCL_ERR_INVALID);
    /* The end of the address space, and more than there is. */
    CHECK(llcl_region_register(context, memory, SIZE_MAX, 0, &region) < 0);
    CHECK(llcl_region_allocate(context, SIZE_MAX, 0, &region) < 0);
    CHECK(llcl_region_allocate(context, SIZE_MAX / 2, 0, &region) < 0);
    CHECK(region == untouched);

    CHECK_STATUS(llcl_region_free(NULL), LLCL_ERR_INVALID);
    CHECK(llcl_region_address(NULL) == NULL);
    CHECK_EQUAL(llcl_region_size(NULL), 0);
    local = llcl_region_local(NULL, 3);
    remote = llcl_region_remote(NULL, 4);
    /* The address of no region names nothing, wherever it is used. */
    {
        llcl_read_params_t read = {0};
        CHECK_OK(llcl_region_register(context, memory, 64, 0, &region));
        read.source = llcl_region_remote(region, 0);
        read.destination = local;
        read.peer = llcl_rank(context);
        read.size = 8;
        CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_KEY);
        read.source = remote;
        read.destination = llcl_region_local(region, 0);
        CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_KEY);
        CHECK_OK(llcl_region_free(region));
    }
}

TEST_MAIN(run)
