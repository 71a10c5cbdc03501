/* Broken if this fails: a program started without a launcher is not a world of one with the
 * documented defaults, or the texts (version, statuses, last error) are not what the header says.
 * kind: alone
 * modes: auto
 * threads: yes
 */
#include "test.h"

static void texts(void)
{
    static const llcl_status_t statuses[] = {
        LLCL_OK, LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY, LLCL_ERR_INVALID,
        LLCL_ERR_RANGE, LLCL_ERR_NO_MEMORY, LLCL_ERR_PEER_DEAD, LLCL_ERR_CANCELED,
        LLCL_ERR_UNSUPPORTED, LLCL_ERR_SYSTEM, LLCL_ERR_STATE, LLCL_ERR_TIMEOUT, LLCL_ERR_KEY,
        LLCL_RETRY_NO_CREDIT, LLCL_ERR_NO_HANDLER, LLCL_RETRY_CONNECTING};
    const size_t count = sizeof statuses / sizeof statuses[0];
    char expected[64];
    size_t i, j;
    CHECK(llcl_version() ==
          (LLCL_VERSION_MAJOR << 16 | LLCL_VERSION_MINOR << 8 | LLCL_VERSION_PATCH));
    snprintf(expected, sizeof expected, "%d.%d.%d", (int)LLCL_VERSION_MAJOR,
             (int)LLCL_VERSION_MINOR, (int)LLCL_VERSION_PATCH);
    CHECK(strcmp(llcl_version_string(), expected) == 0);
    for (i = 0; i < count; i++) {
        CHECK(strlen(llcl_status_string(statuses[i])) > 3);
        for (j = 0; j < i; j++)
            CHECK(strcmp(llcl_status_string(statuses[i]), llcl_status_string(statuses[j])) != 0);
    }
    CHECK(llcl_status_string(4711) != NULL && llcl_status_string(-4711) != NULL);
    CHECK(llcl_last_error() != NULL);
}

int main(void)
{
    llcl_config_t config;
    llcl_context_t *context = NULL;
    llcl_capabilities_t found = {0};
    llcl_peer_info_t info = {0};
    memset(&config, 0x55, sizeof config);
    CHECK_OK(llcl_config_default(&config));
    CHECK_EQUAL(config.struct_size, sizeof config);
    CHECK(config.world == NULL && config.reserved == 0);
    CHECK_EQUAL(config.execution, LLCL_EXECUTION_FROM_ENVIRONMENT);
    CHECK(config.queue_entries == 0 && config.in_flight == 0 && config.regions == 0);
    CHECK_EQUAL(config.am_policy, LLCL_AM_POLICY_FROM_ENVIRONMENT);
    CHECK_EQUAL(config.am_handlers, LLCL_AM_HANDLERS_FROM_ENVIRONMENT);
    CHECK(config.am_slots == 0 && config.am_medium == 0);
    CHECK(config.am_shares == 0 && config.am_requests == 0);
    texts();

    CHECK_OK(llcl_init(NULL, &context));
    CHECK(context != NULL);
    CHECK_EQUAL(llcl_rank(context), 0);
    CHECK_EQUAL(llcl_size(context), 1);
    CHECK_OK(llcl_peer_alive(context, 0));
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    found.struct_size = sizeof found;
    CHECK_OK(llcl_query(context, &found));
    CHECK_EQUAL(found.execution, LLCL_EXECUTION_AUTO);
    CHECK_EQUAL(found.queue_entries, 1024);
    CHECK_EQUAL(found.in_flight, 1024);
    CHECK_EQUAL(found.regions, 1024);
    CHECK(found.small >= 464);
    CHECK_EQUAL(found.am_policy, LLCL_AM_POLICY_ACQUIRE);
    CHECK_EQUAL(found.am_slots, 512);
    CHECK_EQUAL(found.am_medium, 4096);
    CHECK_EQUAL(found.am_shares, 1); /* only the policy distributed has more */
    CHECK_EQUAL(found.am_requests, 256);
    CHECK_EQUAL(found.am_handlers, LLCL_AM_HANDLERS_SERIAL);
    CHECK_EQUAL(found.page, sysconf(_SC_PAGESIZE));
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, 0, &info));
    CHECK_EQUAL(info.transport, LLCL_TRANSPORT_LOOPBACK);
    CHECK_EQUAL(info.process, getpid());
    CHECK_OK(llcl_progress(context));
    CHECK_OK(llcl_finalize(context));

    /* A refusal leaves its sentence for this thread. */
    CHECK_STATUS(llcl_config_default(NULL), LLCL_ERR_INVALID);
    CHECK(strlen(llcl_last_error()) > 3);
    return 0;
}
