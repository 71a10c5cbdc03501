/* Broken if this fails: a rank of another node counts as one of this node although there is no
 * network, or is refused by another status than LLCL_ERR_UNSUPPORTED or by a message that does not
 * say why; or a LLCL_NODE_ID that makes no sense is not refused.
 * kind: alone
 * modes: auto
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), peer;
    struct shared shared;
    share(context, ALLOCATED, 4096, &shared);
    for (peer = 0; peer < llcl_size(context); peer++) {
        llcl_write_value_params_t params = LLCL_WRITE_VALUE_PARAMS_INIT;
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        params.peer = peer;
        params.destination = remote_at(&shared, peer, 8 * me);
        params.value = 1;
        params.size = 8;
        if (peer / 2 == me / 2) {
            CHECK_OK(llcl_write_value(context, &params));
            CHECK_OK(llcl_query_peer(context, peer, &info));
            CHECK_EQUAL(info.node, 7 + peer / 2);
            continue;
        }
        CHECK_STATUS(llcl_connect(context, &peer, 1), LLCL_ERR_UNSUPPORTED);
        CHECK(strstr(llcl_last_error(), "another node (number") != NULL);
        CHECK_STATUS(llcl_write_value(context, &params), LLCL_ERR_UNSUPPORTED);
        CHECK_STATUS(llcl_query_peer(context, peer, &info), LLCL_ERR_UNSUPPORTED);
    }
    fence(context);
    CHECK_EQUAL(shared.words[me ^ 1], 1);
    CHECK_EQUAL(shared.words[me ^ 2], 0);
    share_end(context, &shared);
}

static void refused(const char *list)
{
    llcl_config_t config = LLCL_CONFIG_INIT;
    llcl_context_t *context = NULL;
    CHECK(setenv("LLCL_NODE_ID", list, 1) == 0);
    CHECK_OK(llcl_world_create(2, &config.world));
    CHECK_STATUS(llcl_init(&config, &context), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "LLCL_NODE_ID is \"") != NULL);
    CHECK_OK(llcl_world_free(config.world));
}

int main(void)
{
    refused("0,");
    refused("one");
    CHECK(setenv("LLCL_NODE_ID", "7,7,8,8", 1) == 0);
    return test_threads(run, NULL, 4);
}
