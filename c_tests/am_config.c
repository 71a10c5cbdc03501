/* Broken if this fails: a setting of active messages, from the configuration or the environment, is
 * not in force, or the environment wins over the configuration.
 * kind: alone
 * modes: auto
 * threads: yes
 */
#include "am.h"

static llcl_config_t wanted;

static void configure(llcl_config_t *config)
{
    config->am_policy = wanted.am_policy;
    config->am_slots = wanted.am_slots;
    config->am_medium = wanted.am_medium;
    config->am_shares = wanted.am_shares;
    config->am_requests = wanted.am_requests;
    config->am_handlers = wanted.am_handlers;
}

static llcl_config_t expected;

static void run(llcl_context_t *context)
{
    llcl_capabilities_t found = am_limits(context);
    uint32_t shares = expected.am_policy == LLCL_AM_POLICY_DISTRIBUTED ? expected.am_shares : 1;
    CHECK_EQUAL(found.am_policy, expected.am_policy);
    CHECK_EQUAL(found.am_slots, expected.am_slots);
    CHECK_EQUAL(found.am_medium, expected.am_medium);
    CHECK_EQUAL(found.am_shares, shares);
    CHECK_EQUAL(found.am_requests, expected.am_requests);
    CHECK_EQUAL(found.am_handlers, expected.am_handlers);
    fence(context);
}

static void check(uint32_t ranks)
{
    CHECK(test_threads(run, configure, ranks) == 0);
}

static void environment(const char *policy, const char *slots, const char *medium, const char *shares,
                        const char *requests, const char *handlers)
{
    setenv("LLCL_AM_POLICY", policy, 1);
    setenv("LLCL_AM_SLOTS", slots, 1);
    setenv("LLCL_AM_MEDIUM", medium, 1);
    setenv("LLCL_AM_SHARES", shares, 1);
    setenv("LLCL_AM_REQUESTS", requests, 1);
    setenv("LLCL_AM_HANDLERS", handlers, 1);
}

static llcl_config_t values(uint32_t policy, uint32_t slots, uint32_t medium, uint32_t shares,
                            uint32_t requests, uint32_t handlers)
{
    llcl_config_t config;
    memset(&config, 0, sizeof config);
    config.am_policy = policy;
    config.am_slots = slots;
    config.am_medium = medium;
    config.am_shares = shares;
    config.am_requests = requests;
    config.am_handlers = handlers;
    return config;
}

int main(void)
{
    memset(&wanted, 0, sizeof wanted);
    environment("distributed", "64", "128", "2", "128", "parallel");
    expected = values(LLCL_AM_POLICY_DISTRIBUTED, 64, 128, 2, 128, LLCL_AM_HANDLERS_PARALLEL);
    check(4);
    environment("limit", "1", "64", "16", "64", "serial");
    expected = values(LLCL_AM_POLICY_LIMIT, 1, 64, 1, 64, LLCL_AM_HANDLERS_SERIAL);
    check(2);
    environment("acquire", "1024", "65536", "16", "4096", "serial");
    expected = values(LLCL_AM_POLICY_ACQUIRE, 1024, 65536, 1, 4096, LLCL_AM_HANDLERS_SERIAL);
    check(1);
    /* The configuration wins; what it leaves at 0 is the environment's. */
    wanted = values(LLCL_AM_POLICY_DISTRIBUTED, 32, 192, 16, 0, LLCL_AM_HANDLERS_PARALLEL);
    expected = values(LLCL_AM_POLICY_DISTRIBUTED, 32, 192, 4, 4096, LLCL_AM_HANDLERS_PARALLEL);
    /* At most one share for each rank, and for each two slots. */
    check(4);
    expected.am_shares = 16;
    check(16);
    wanted.am_slots = expected.am_slots = 4;
    expected.am_shares = 2;
    check(16);
    return 0;
}
