/* Broken if this fails: llcl_query or llcl_query_peer tell something else than what is in force, or
 * take a structure of unknown size.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "test.h"

static void configure(llcl_config_t *config)
{
    config->queue_entries = 64;
    config->in_flight = 128;
    config->regions = 100;
    if ((getenv("LLCL_RANK") ? (uint32_t)atoi(getenv("LLCL_RANK")) : config->rank) % 2) {
        config->am_slots = 128;
        config->am_policy = LLCL_AM_POLICY_LIMIT;
    } else {
        config->am_slots = 64;
        config->am_policy = LLCL_AM_POLICY_ACQUIRE;
    }
}

static void peers(llcl_context_t *context)
{
    const char *cma = getenv("LLCL_CMA");
    int networked = getenv("LLCL_TRANSPORT") != NULL || getenv("LLCL_NODE_ID") != NULL;
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer, pid = (uint32_t)getpid();
    uint32_t all[64];
    llcl_peer_info_t info, own = LLCL_PEER_INFO_INIT;
    CHECK_OK(llcl_query_peer(context, me, &own));
    CHECK(own.node == 0 || networked);
    CHECK_OK(llcl_allgather_bytes(context, &pid, sizeof pid, all));
    for (peer = 0; peer < size; peer++) {
        memset(&info, 0, sizeof info);
        info.struct_size = sizeof info;
        CHECK_OK(llcl_query_peer(context, peer, &info));
        if (peer == me || info.transport != LLCL_TRANSPORT_WIRE)
            CHECK_EQUAL(info.transport, peer == me ? LLCL_TRANSPORT_LOOPBACK : LLCL_TRANSPORT_SHM);
        else
            CHECK(networked);
        CHECK_EQUAL(info.process, all[peer]);
        CHECK_EQUAL(info.node == own.node, info.transport != LLCL_TRANSPORT_WIRE);
        CHECK_EQUAL(info.am_slots, 64u << peer % 2);
        CHECK_EQUAL(info.am_policy, peer % 2 ? LLCL_AM_POLICY_LIMIT : LLCL_AM_POLICY_ACQUIRE);
        if (peer == me)
            CHECK_EQUAL(info.registered_access, LLCL_ACCESS_MAPPED);
        else if (info.transport == LLCL_TRANSPORT_WIRE)
            CHECK(info.registered_access == LLCL_ACCESS_MESSAGE || info.registered_access == LLCL_ACCESS_WIRE);
        else if (cma && strcmp(cma, "off") == 0)
            CHECK_EQUAL(info.registered_access, LLCL_ACCESS_MESSAGE);
        else
            CHECK(info.registered_access == LLCL_ACCESS_KERNEL ||
                  info.registered_access == LLCL_ACCESS_MESSAGE);
        CHECK_EQUAL(info.registered_writes, info.registered_access);
        CHECK_EQUAL(info.kernel_write_error, info.kernel_error);
        /* Messages only where the kernel refuses, or is not asked. */
        CHECK((info.kernel_error != 0) ==
              (info.registered_access == LLCL_ACCESS_MESSAGE && info.transport != LLCL_TRANSPORT_WIRE &&
               !(cma && strcmp(cma, "off") == 0)));
    }
    CHECK_STATUS(llcl_query_peer(context, size, &info), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_query_peer(context, 0, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_query_peer(NULL, 0, &info), LLCL_ERR_INVALID);
    info.struct_size = 0;
    CHECK_STATUS(llcl_query_peer(context, 0, &info), LLCL_ERR_INVALID);
}

/* What may still be allocated: no more than the machine has, and than a limit of file sizes
 * leaves. */
static void memory(llcl_context_t *context)
{
    uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    llcl_capabilities_t found = LLCL_CAPABILITIES_INIT;
    struct rlimit before, now;
    CHECK_OK(llcl_query(context, &found));
    CHECK(found.memory > 0 && found.memory <= most);
    if (test_in_threads())
        return;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    now = before;
    now.rlim_cur = 1 << 28;
    CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
    CHECK_OK(llcl_query(context, &found));
    CHECK(found.memory > 0 && found.memory < 1 << 28);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

static void run(llcl_context_t *context)
{
    llcl_capabilities_t found = {0};
    found.struct_size = sizeof found;
    CHECK_OK(llcl_query(context, &found));
    CHECK_EQUAL(found.execution, test_mode_is("offload")  ? LLCL_EXECUTION_OFFLOAD
                                 : test_mode_is("direct") ? LLCL_EXECUTION_DIRECT
                                                          : LLCL_EXECUTION_AUTO);
    CHECK_EQUAL(found.queue_entries, 64);
    CHECK_EQUAL(found.in_flight, 128);
    CHECK_EQUAL(found.regions, 100);
    CHECK_STATUS(llcl_query(context, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_query(NULL, &found), LLCL_ERR_INVALID);
    found.struct_size = 0;
    CHECK_STATUS(llcl_query(context, &found), LLCL_ERR_INVALID);
    peers(context);
    memory(context);
}

TEST_MAIN_CONFIG(run, configure)
