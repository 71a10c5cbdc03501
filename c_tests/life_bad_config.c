/* Broken if this fails: llcl_init takes a configuration that means nothing, writes its
 * out-parameter although it failed, or does not survive NULL.
 * kind: alone
 * modes: auto
 * threads: yes
 */
#include "test.h"

static llcl_config_t defaults(void)
{
    llcl_config_t config;
    CHECK_OK(llcl_config_default(&config));
    return config;
}

#define REFUSED(field, value, expected)                         \
    do {                                                        \
        llcl_config_t config_ = defaults();                     \
        llcl_context_t *context_ = (llcl_context_t *)0x10;      \
        config_.field = (value);                                \
        CHECK_STATUS(llcl_init(&config_, &context_), expected); \
        CHECK(context_ == (llcl_context_t *)0x10);              \
        CHECK(strlen(llcl_last_error()) > 3);                   \
    } while (0)

int main(void)
{
    llcl_config_t config = defaults();
    llcl_world_t *world = NULL;
    llcl_context_t *context = NULL, *second = NULL;
    CHECK_STATUS(llcl_config_default(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_init(&config, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_finalize(NULL), LLCL_ERR_INVALID);
    REFUSED(struct_size, 0, LLCL_ERR_INVALID);
    REFUSED(struct_size, sizeof config + 8, LLCL_ERR_INVALID);
    REFUSED(execution, 4, LLCL_ERR_INVALID);
    REFUSED(queue_entries, 4, LLCL_ERR_INVALID);
    REFUSED(queue_entries, 100, LLCL_ERR_INVALID);
    REFUSED(queue_entries, 131072, LLCL_ERR_INVALID);
    REFUSED(in_flight, 63, LLCL_ERR_INVALID);
    REFUSED(in_flight, 65, LLCL_ERR_INVALID);
    REFUSED(in_flight, 3968, LLCL_ERR_INVALID);
    REFUSED(regions, 65536, LLCL_ERR_INVALID);
    REFUSED(reserved, 1, LLCL_ERR_INVALID);
    REFUSED(am_policy, 4, LLCL_ERR_INVALID);
    REFUSED(am_policy, UINT32_MAX, LLCL_ERR_INVALID);
    REFUSED(am_slots, 3, LLCL_ERR_INVALID);
    REFUSED(am_slots, 131072, LLCL_ERR_INVALID);
    REFUSED(am_medium, 63, LLCL_ERR_INVALID);
    REFUSED(am_medium, 100, LLCL_ERR_INVALID);
    REFUSED(am_medium, 65600, LLCL_ERR_INVALID);
    REFUSED(am_shares, 3, LLCL_ERR_INVALID);
    REFUSED(am_shares, 2 * LLCL_AM_SHARES, LLCL_ERR_INVALID);
    REFUSED(am_requests, 32, LLCL_ERR_INVALID);
    REFUSED(am_requests, 100, LLCL_ERR_INVALID);
    REFUSED(am_requests, 8192, LLCL_ERR_INVALID);
    REFUSED(am_handlers, 4, LLCL_ERR_INVALID);

    /* A rank that the world does not have; a rank that is taken. */
    CHECK_STATUS(llcl_world_create(0, &world), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_world_create(1, NULL), LLCL_ERR_INVALID);
    CHECK(world == NULL);
    CHECK_OK(llcl_world_create(1, &world));
    config.world = world;
    config.rank = 1;
    CHECK_STATUS(llcl_init(&config, &context), LLCL_ERR_RANGE);
    config.rank = 0;
    CHECK_OK(llcl_init(&config, &context));
    CHECK_STATUS(llcl_init(&config, &second), LLCL_ERR_STATE);
    CHECK(second == NULL);
    CHECK_STATUS(llcl_world_free(world), LLCL_RETRY_BUSY);
    CHECK_OK(llcl_finalize(context));
    CHECK_OK(llcl_world_free(world));

    /* The smallest and largest values are taken. */
    config = defaults();
    config.queue_entries = 8;
    config.in_flight = 64;
    config.regions = 1;
    config.am_slots = 1;
    config.am_medium = 64;
    config.am_shares = 1;
    config.am_requests = 64;
    config.execution = LLCL_EXECUTION_OFFLOAD;
    CHECK_OK(llcl_init(&config, &context));
    CHECK_OK(llcl_finalize(context));
    config.queue_entries = 65536;
    config.in_flight = 3904;
    config.regions = 65535;
    config.am_slots = 65536;
    config.am_medium = 65536; /* memory is taken as it is touched */
    config.am_shares = LLCL_AM_SHARES;
    config.am_requests = 4096;
    config.am_policy = LLCL_AM_POLICY_DISTRIBUTED;
    config.execution = LLCL_EXECUTION_DIRECT;
    CHECK_OK(llcl_init(&config, &context));
    CHECK_OK(llcl_finalize(context));
    return 0;
}
