/* Broken if this fails: an operation without completion is accepted and fails, and neither
 * llcl_flush nor llcl_flush_all reports it; or they report it twice, or for another peer, or report
 * a failure that a completion has reported.
 * ranks: 3
 * cma: on
 */
#include "shared.h"

#include <sys/mman.h>

#define SIZE 4096u

/* The owner lets nobody write there, so a write by the kernel fails when it is executed. */
static llcl_remote_t *share_read_only(llcl_context_t *context)
{
    llcl_region_t *region = NULL;
    llcl_remote_t mine, *all = calloc(llcl_size(context), sizeof *all);
    void *memory = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != NULL && memory != MAP_FAILED);
    CHECK_OK(llcl_region_register(context, memory, SIZE, 0, &region));
    mine = llcl_region_remote(region, 0);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    return all;
}

static void post(llcl_context_t *context, uint32_t peer, const llcl_remote_t *all,
                 const struct shared *mine, llcl_completion_t end)
{
    llcl_write_params_t write = {0};
    write.peer = peer;
    write.flags = LLCL_FLAG_DEFER;
    write.source = llcl_region_local(mine->region, 0);
    write.destination = all[peer];
    write.size = 1000;
    write.on_local = llcl_no_completion();
    write.on_complete = end;
    POST(llcl_try_write_async(context, &write));
}

static void fail(llcl_context_t *context, const llcl_remote_t *all, const struct shared *mine)
{
    uint64_t word = 0;
    llcl_status_t status;
    post(context, 1, all, mine, llcl_no_completion());
    CHECK_OK(llcl_flush(context, 2));
    status = llcl_flush(context, 1);
    CHECK(status < 0 && status != LLCL_ERR_PEER_DEAD);
    CHECK(strstr(llcl_last_error(), "a write of 1000 bytes to rank 1 was accepted and has failed"));
    CHECK_OK(llcl_flush(context, 1));
    CHECK_OK(llcl_flush_all(context));
    post(context, 2, all, mine, llcl_no_completion());
    post(context, 1, all, mine, llcl_no_completion());
    post(context, 2, all, mine, llcl_no_completion());
    CHECK_STATUS(llcl_flush_all(context), status);
    CHECK(strstr(llcl_last_error(), "rank 2") && strstr(llcl_last_error(), "2 more failed"));
    CHECK_OK(llcl_flush_all(context));
    post(context, 1, all, mine, llcl_store_on(&word));
    CHECK_OK(llcl_flush_all(context));
    CHECK((int64_t)word == status);
}

static void run(llcl_context_t *context)
{
    llcl_remote_t *all = share_read_only(context);
    llcl_peer_info_t info = {0};
    struct shared mine;
    region_make(context, ALLOCATED, SIZE, &mine);
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, 1, &info));
    if (info.registered_access != LLCL_ACCESS_KERNEL && llcl_rank(context) == 0)
        test_skip("the kernel copies nothing here");
    if (llcl_rank(context) == 0)
        fail(context, all, &mine);
    fence(context);
    region_drop(&mine);
    free(all);
}

TEST_MAIN(run)
