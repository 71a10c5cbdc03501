/* Broken if this fails: llcl_query_peer says of a peer that it is reached otherwise than it is, or
 * gives its node another number than LLCL_NODE_ID; a write to a peer of the same node goes over the
 * network, or one to another node does not come.
 * ranks: 2 3
 * cma: on off
 * threads: yes
 */
#include "shared.h"

/* The number of a rank in a list like 0,0,1,1. */
static uint32_t number_of(uint32_t rank)
{
    const char *at = getenv("LLCL_NODE_ID");
    for (; at && rank > 0; rank--)
        at = strchr(at, ',') + 1;
    return at ? (uint32_t)strtoul(at, NULL, 10) : 0;
}

static void writes(llcl_context_t *context, struct shared *shared, uint32_t peer, int mapped)
{
    llcl_write_value_params_t params = LLCL_WRITE_VALUE_PARAMS_INIT;
    uint64_t ended = 0;
    llcl_status_t status;
    params.peer = peer;
    params.flags = LLCL_FLAG_DONE;
    params.destination = remote_at(shared, peer, 8 * llcl_rank(context));
    params.value = 100 + llcl_rank(context);
    params.size = 8;
    params.on_complete = llcl_store_on(&ended);
    status = llcl_write_value_async(context, &params);
    /* Mapped memory is written by the caller, but in the mode that leaves all to the progress
     * thread. */
    CHECK((status == LLCL_DONE) == (mapped && !test_mode_is("offload")));
    if (status != LLCL_DONE) {
        CHECK_OK(status);
        AWAIT(&ended, 1);
        CHECK_EQUAL(ended, 1);
    }
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer;
    int networked = getenv("LLCL_TRANSPORT") != NULL, chosen = getenv("LLCL_NODE_ID") != NULL;
    llcl_peer_info_t own = LLCL_PEER_INFO_INIT;
    struct shared shared;
    share(context, ALLOCATED, 4096, &shared);
    CHECK_OK(llcl_query_peer(context, me, &own));
    for (peer = 0; peer < size; peer++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        int near = !networked || (chosen && number_of(peer) == number_of(me));
        CHECK_OK(llcl_query_peer(context, peer, &info));
        CHECK_EQUAL(info.transport, peer == me ? LLCL_TRANSPORT_LOOPBACK
                                    : near     ? LLCL_TRANSPORT_SHM
                                               : LLCL_TRANSPORT_WIRE);
        CHECK(chosen || networked || info.node == 0);
        CHECK(!chosen || info.node == number_of(peer));
        /* Ranks with one number share memory, and others do not. */
        CHECK_EQUAL(info.node == own.node, info.transport != LLCL_TRANSPORT_WIRE);
        if (info.transport == LLCL_TRANSPORT_WIRE) {
            CHECK(info.registered_access == LLCL_ACCESS_MESSAGE || info.registered_access == LLCL_ACCESS_WIRE);
            CHECK_EQUAL(info.registered_writes, info.registered_access);
            CHECK_EQUAL(info.kernel_error, 0);
        }
        writes(context, &shared, peer, near || peer == me);
    }
    fence(context);
    for (peer = 0; peer < size; peer++)
        CHECK_EQUAL(word_get(&shared.words[peer]), 100 + peer);
    share_end(context, &shared);
}

TEST_MAIN(run)
