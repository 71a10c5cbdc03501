/* Broken if this fails: the limit on regions is not LLCL_ERR_NO_MEMORY, or a freed region's place
 * cannot be used again; or an old address reaches the place's new owner.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define LIMIT 16

static void configure(llcl_config_t *config)
{
    config->regions = LIMIT;
}

static void run(llcl_context_t *context)
{
    llcl_region_t *regions[LIMIT], *extra = NULL;
    unsigned char memory[LIMIT][32];
    llcl_remote_t old[LIMIT];
    unsigned made, round;
    for (round = 0; round < 3; round++) {
        for (made = 0; made < LIMIT; made++) {
            if (made % 2)
                CHECK_OK(llcl_region_allocate(context, 100, 0, &regions[made]));
            else
                CHECK_OK(llcl_region_register(context, memory[made], 32, 0, &regions[made]));
            if (round > 0) {
                llcl_write_value_params_t value = {0};
                unsigned i;
                value.peer = llcl_rank(context);
                value.size = 1;
                for (i = 0; i < LIMIT; i++) {
                    value.destination = old[i];
                    CHECK_STATUS(llcl_write_value(context, &value), LLCL_ERR_KEY);
                }
            }
        }
        CHECK_STATUS(llcl_region_allocate(context, 100, 0, &extra), LLCL_ERR_NO_MEMORY);
        CHECK_STATUS(llcl_region_register(context, memory, 32, 0, &extra), LLCL_ERR_NO_MEMORY);
        CHECK(extra == NULL);
        CHECK_OK(llcl_region_free(regions[3]));
        CHECK_OK(llcl_region_register(context, memory, 32, 0, &regions[3]));
        for (made = 0; made < LIMIT; made++) {
            old[made] = llcl_region_remote(regions[made], 0);
            CHECK_OK(llcl_region_free(regions[made]));
        }
    }
}

TEST_MAIN_CONFIG(run, configure)
