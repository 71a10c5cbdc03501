/* Broken if this fails: where the kernel refuses process_vm_writev alone, as a sandbox may, writes
 * to registered memory fail instead of going by messages to its owner, or llcl_query_peer tells
 * that the kernel copies them.
 * ranks: 2
 * cma: on
 */
#include "shared.h"

#include <sys/types.h>
#include <sys/uio.h>

#define SIZE 100000u

static uint64_t refusals;

/* The library calls this one: the program's own function comes before that of the C library. */
ssize_t process_vm_writev(pid_t process, const struct iovec *local, unsigned long locals,
                          const struct iovec *remote, unsigned long remotes, unsigned long flags)
{
    (void)process, (void)local, (void)locals, (void)remote, (void)remotes, (void)flags;
    word_add(&refusals, 1);
    errno = EPERM;
    return -1;
}

static void write_and_read(llcl_context_t *context, const struct shared *target,
                           struct shared *mine, uint32_t seed, uint32_t flags)
{
    llcl_write_signal_params_t write = {0};
    llcl_read_params_t read = {0};
    uint64_t ended = 0;
    pattern_fill(mine->bytes, SIZE, seed);
    write.peer = read.peer = 1;
    write.flags = flags;
    write.source = llcl_region_local(mine->region, 0);
    write.destination = read.source = remote_at(target, 1, 0);
    write.size = read.size = SIZE;
    write.signal = remote_at(target, 1, SIZE + 96);
    write.signal_op = LLCL_SIGNAL_ADD;
    write.signal_value = 1;
    write.on_local = read.on_complete = llcl_no_completion();
    write.on_complete = llcl_store_on(&ended);
    POST(llcl_try_write_signal_async(context, &write));
    CHECK_OK(llcl_flush(context, 1));
    CHECK_EQUAL(word_get(&ended), 1);
    memset(mine->bytes, 0, SIZE);
    read.destination = llcl_region_local(mine->region, 0);
    CHECK_OK(llcl_read(context, &read));
    CHECK(pattern_holds(mine->bytes, SIZE, seed));
}

static void run(llcl_context_t *context)
{
    llcl_peer_info_t info = {0};
    struct shared target, mine;
    share(context, REGISTERED, SIZE + 128, &target);
    region_make(context, ALLOCATED, SIZE, &mine);
    info.struct_size = sizeof info;
    if (llcl_rank(context) == 0) {
        CHECK_OK(llcl_query_peer(context, 1, &info));
        CHECK_EQUAL(info.registered_writes, LLCL_ACCESS_MESSAGE);
        CHECK(info.kernel_write_error != 0);
        if (info.registered_access == LLCL_ACCESS_KERNEL)
            CHECK_EQUAL(info.kernel_write_error, EPERM);
        write_and_read(context, &target, &mine, 1, 0);
        write_and_read(context, &target, &mine, 2, LLCL_FLAG_DEFER);
        CHECK(word_get(&refusals) > 0 || info.registered_access != LLCL_ACCESS_KERNEL);
    }
    fence(context);
    if (llcl_rank(context) == 1)
        CHECK_EQUAL(word_get((uint64_t *)(void *)(target.bytes + SIZE + 96)), 2);
    region_drop(&mine);
    share_end(context, &target);
}

TEST_MAIN(run)
