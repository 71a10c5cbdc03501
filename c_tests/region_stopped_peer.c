/* Broken if this fails: a stopped peer (SIGSTOP) that has used regions makes llcl_region_allocate
 * wait for ever where their memory is needed, instead of answering LLCL_ERR_TIMEOUT and naming the
 * peer; or llcl_flush and llcl_region_free wait for it; or the memory is not used again when the
 * peer goes on.
 * ranks: 2
 * modes: auto offload
 */
#include "stopped.h"

#define MIB (1u << 20)
#define LIMIT (32u * MIB)
#define MOST 32u

static uint32_t fill(llcl_context_t *context, llcl_region_t **regions, llcl_status_t *status)
{
    uint32_t count = 0;
    while (count < MOST && (*status = llcl_region_allocate(context, MIB, 0, &regions[count])) == LLCL_OK)
        count++;
    return count;
}

/* Rank 0 owns the memory, rank 1 has used it. */
static void owner(llcl_context_t *context, const struct shared *shared)
{
    llcl_region_t *regions[MOST], *extra = NULL;
    llcl_status_t status;
    uint32_t count = fill(context, regions, &status), i;
    llcl_write_params_t write = {0};
    pid_t peer;
    CHECK(count > 4 && count < MOST);
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    for (i = 0; i < count; i++)
        ((llcl_remote_t *)(void *)shared->bytes)[i] = llcl_region_remote(regions[i], 0);
    write.peer = 1;
    write.size = MOST * sizeof(llcl_remote_t);
    write.source = llcl_region_local(shared->region, 0);
    write.destination = remote_at(shared, 1, 0);
    CHECK_OK(llcl_write(context, &write));
    fence(context);
    fence(context);
    peer = peer_stop(context, 1);
    for (i = 0; i < count; i++)
        CHECK_OK(llcl_region_free(regions[i]));
    CHECK_STATUS(llcl_region_allocate(context, MIB, 0, &extra), LLCL_ERR_TIMEOUT);
    CHECK(extra == NULL && strstr(llcl_last_error(), "rank 1") != NULL);
    CHECK(strstr(llcl_last_error(), "RLIMIT_FSIZE") != NULL);
    /* The question to rank 1 is under way. */
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_region_register(context, shared->bytes, 64, 0, &extra));
    CHECK_OK(llcl_region_free(extra));
    CHECK(process_stands(peer));
    CHECK(kill(peer, SIGCONT) == 0);
    CHECK_EQUAL(fill(context, regions, &status), count);
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    for (i = 0; i < count; i++)
        CHECK_OK(llcl_region_free(regions[i]));
}

static void user(llcl_context_t *context, const struct shared *shared)
{
    const llcl_remote_t *remote = (const llcl_remote_t *)(const void *)shared->bytes;
    llcl_write_value_params_t value = {0};
    uint32_t i;
    fence(context);
    value.value = value.size = 8;
    for (i = 0; i < MOST && remote[i].key != 0; i++) {
        value.destination = remote[i];
        CHECK_OK(llcl_write_value(context, &value));
    }
    fence(context);
}

static void run(llcl_context_t *context)
{
    struct shared shared;
    test_limit_files(LIMIT);
    share(context, ALLOCATED, 4096, &shared);
    (llcl_rank(context) == 0 ? owner : user)(context, &shared);
    share_end(context, &shared);
}

TEST_MAIN(run)
