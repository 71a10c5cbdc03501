/* Broken if this fails: if the kernel cannot copy because the memory of this rank may not be
 * written or read, the error blames the peer's memory, which is fine; or the other way round.
 * ranks: 2
 * cma: on
 * wire: no
 */
#include "shared.h"
#include <sys/mman.h>

#define SIZE 65536u

static void fails(llcl_context_t *context, unsigned char *ours, llcl_remote_t theirs, int writes,
                  llcl_status_t status, const char *whose)
{
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    read.peer = write.peer = 1;
    read.source = write.destination = theirs;
    read.destination = write.source = llcl_local_address(ours);
    read.size = write.size = SIZE;
    CHECK_STATUS(writes ? llcl_write(context, &write) : llcl_read(context, &read), status);
    /* A thread of the library may have made the copy; the sentence is then that of the status. */
    if (status != LLCL_OK && (strstr(llcl_last_error(), "memory at") != NULL || test_mode_is("direct")) &&
        strstr(llcl_last_error(), whose) == NULL)
        test_fail(__FILE__, __LINE__, whose);
}

static void run(llcl_context_t *context)
{
    unsigned char *own = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
    llcl_region_t *region;
    llcl_remote_t mine, all[2], closed;
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    CHECK(own != MAP_FAILED);
    CHECK_OK(llcl_region_register(context, own, 3 * SIZE, 0, &region));
    /* The second part may not be written, the third not be used. The first page of each pair may,
     * so that the kernel stops in the middle. */
    CHECK(mprotect(own + SIZE + SIZE / 2, SIZE / 2, PROT_READ) == 0);
    CHECK(mprotect(own + 2 * SIZE + SIZE / 2, SIZE / 2, PROT_NONE) == 0);
    mine = llcl_region_remote(region, 0);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    CHECK_OK(llcl_query_peer(context, 1, &info));
    if (llcl_rank(context) == 0 && info.registered_access == LLCL_ACCESS_KERNEL) {
        closed = all[1];
        closed.offset += 2 * SIZE;
        fails(context, own, all[1], 0, LLCL_OK, "");
        fails(context, own + SIZE, all[1], 0, LLCL_ERR_INVALID, "of this rank");
        fails(context, own + SIZE, all[1], 1, LLCL_OK, "");
        fails(context, own + 2 * SIZE, all[1], 1, LLCL_ERR_INVALID, "of this rank");
        fails(context, own, closed, 0, LLCL_ERR_KEY, "of process");
        fails(context, own, closed, 1, LLCL_ERR_KEY, "of process");
    }
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_region_free(region));
    CHECK(munmap(own, 3 * SIZE) == 0);
}

TEST_MAIN(run)
