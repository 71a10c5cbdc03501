/* Broken if this fails: an allocated region does not start as zeros, and so shows what another
 * region or process left in the memory.
 * ranks: 2
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    unsigned round;
    for (round = 0; round < 4; round++) {
        llcl_region_t *region = NULL;
        CHECK_OK(llcl_region_allocate(context, 300000, 0, &region));
        CHECK(bytes_are(llcl_region_address(region), 300000, 0));
        memset(llcl_region_address(region), 0xab, 300000);
        CHECK_OK(llcl_region_free(region));
    }
}

TEST_MAIN(run)
