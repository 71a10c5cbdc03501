/* Broken if this fails: a local address that is stale, forged, of another context, or out of range
 * is read from or written to.
 * ranks: 1 2
 * threads: yes
 */
#include "shared.h"

static llcl_status_t both(llcl_context_t *context, llcl_local_t local, llcl_remote_t remote,
                          uint32_t peer, size_t size)
{
    llcl_read_params_t read = {0};
    llcl_write_params_t write = {0};
    llcl_write_signal_params_t signal = {0};
    llcl_status_t status;
    read.peer = write.peer = signal.peer = peer;
    read.size = write.size = signal.size = size;
    read.source = write.destination = signal.destination = signal.signal = remote;
    signal.destination.offset += 64;
    signal.signal_op = LLCL_SIGNAL_SET;
    read.destination = write.source = signal.source = local;
    status = llcl_read(context, &read);
    CHECK_STATUS(llcl_write(context, &write), status);
    CHECK_STATUS(llcl_write_signal(context, &signal), status);
    return status;
}

/* A second world inside this process, so that there is another context to confuse this one with. */
static void other_context(llcl_context_t *context, llcl_remote_t remote, uint32_t peer)
{
    llcl_config_t config;
    llcl_world_t *world = NULL;
    llcl_context_t *other = NULL;
    llcl_region_t *region = NULL;
    CHECK_OK(llcl_config_default(&config));
    CHECK_OK(llcl_world_create(1, &world));
    config.world = world;
    CHECK_OK(llcl_init(&config, &other));
    CHECK_OK(llcl_region_allocate(other, 4096, 0, &region));
    CHECK_STATUS(both(context, llcl_region_local(region, 0), remote, peer, 8), LLCL_ERR_KEY);
    CHECK_STATUS(both(context, llcl_region_local(region, 0), llcl_region_remote(region, 0),
                      llcl_rank(context), 8),
                 LLCL_ERR_KEY);
    CHECK_OK(llcl_finalize(other));
    CHECK_OK(llcl_world_free(world));
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    llcl_local_t local, forged;
    llcl_remote_t remote;
    int bit;
    share(context, ALLOCATED, 4096, &target);
    region_make(context, REGISTERED, 256, &mine);
    local = llcl_region_local(mine.region, 0);
    remote = remote_at(&target, peer, 0);
    CHECK_OK(both(context, local, remote, peer, 64));
    for (bit = 0; bit < 64; bit++) {
        forged = local;
        forged.key ^= UINT64_C(1) << bit;
        if (forged.key == llcl_region_local(target.region, 0).key)
            continue;
        CHECK_STATUS(both(context, forged, remote, peer, 8), LLCL_ERR_KEY);
    }
    forged = local;
    forged.offset = 255;
    CHECK_STATUS(both(context, forged, remote, peer, 2), LLCL_ERR_RANGE);
    CHECK_STATUS(both(context, forged, remote, peer, SIZE_MAX), LLCL_ERR_RANGE);
    forged.offset = UINT64_MAX;
    CHECK_STATUS(both(context, forged, remote, peer, 1), LLCL_ERR_RANGE);
    CHECK_STATUS(both(context, forged, remote, peer, 8), LLCL_ERR_RANGE);
    other_context(context, remote, peer);
    region_drop(&mine);
    CHECK_STATUS(both(context, local, remote, peer, 8), LLCL_ERR_KEY);
    share_end(context, &target);
}

TEST_MAIN(run)
