/* Broken if this fails: a request of many pieces takes a system call for each piece that the kernel
 * copies, or a call that stops early, in the midst of a piece, loses or doubles bytes.
 * ranks: 2
 * modes: auto offload
 * cma: on
 */
#define _GNU_SOURCE
#include "shared.h"
#include <sys/syscall.h>
#include <sys/uio.h>

#define SIZE ((size_t)1 << 18)
#define PIECES 3000u

static uint64_t calls, vectors;
static size_t most; /* bytes that a call moves at most; 0: all */

/* In the place of the C library's: counts, and stops early if it is told to. */
static ssize_t counted(long number, pid_t pid, const struct iovec *ours, unsigned long n, const struct iovec *theirs,
                       unsigned long m)
{
    struct iovec some[1024];
    size_t left = most;
    unsigned long k;
    word_add(&calls, 1);
    word_add(&vectors, m);
    if (most == 0 || m > 1024)
        return syscall(number, pid, ours, n, theirs, m, 0);
    for (k = 0; k < m && left > 0; k++) {
        some[k] = theirs[k];
        if (some[k].iov_len > left)
            some[k].iov_len = left;
        left -= some[k].iov_len;
    }
    return syscall(number, pid, ours, n, some, k, 0);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *ours, unsigned long n, const struct iovec *theirs,
                         unsigned long m, unsigned long flags)
{
    (void)flags;
    return counted(SYS_process_vm_readv, pid, ours, n, theirs, m);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *ours, unsigned long n, const struct iovec *theirs,
                          unsigned long m, unsigned long flags)
{
    (void)flags;
    return counted(SYS_process_vm_writev, pid, ours, n, theirs, m);
}

/* Every second 40 bytes, there and back. */
static void boxes(llcl_context_t *context, const struct shared *shared, unsigned char *own, unsigned pieces)
{
    uint32_t peer = 1 - llcl_rank(context);
    llcl_strided_params_t params = LLCL_STRIDED_PARAMS_INIT;
    uint64_t expected = most ? 40 * pieces / most + 3 : pieces / 1024 + 1;
    size_t i;
    memset(shared->bytes, 0, shared->size);
    fence(context);
    params.peer = peer;
    params.local = llcl_local_address(own);
    params.remote = shared->remote[peer];
    params.size = 40;
    params.dimensions = 1;
    params.extents[0] = pieces;
    params.local_strides[0] = 40;
    params.remote_strides[0] = 80;
    pattern_fill(own, 40 * (size_t)pieces, pieces + peer);
    calls = vectors = 0;
    CHECK_OK(llcl_write_strided(context, &params));
    CHECK(calls > 0 && calls <= expected);
    CHECK(most || vectors == pieces);
    memset(own, 0, 40 * (size_t)pieces);
    calls = 0;
    CHECK_OK(llcl_read_strided(context, &params));
    CHECK(calls > 0 && calls <= expected);
    CHECK(pattern_holds(own, 40 * (size_t)pieces, pieces + peer));
    fence(context);
    for (i = 0; i < pieces; i++)
        CHECK(bytes_are(shared->bytes + 80 * i + 40, 40, 0));
    fence(context);
}

/* Lists of other lengths on both sides, with empty places. */
static void lists(llcl_context_t *context, const struct shared *shared, unsigned char *own)
{
    enum { LOCALS = 90, REMOTES = 60, EACH = 7 };
    uint32_t peer = 1 - llcl_rank(context), i;
    llcl_local_span_t locals[LOCALS];
    llcl_remote_span_t remotes[REMOTES];
    llcl_vector_params_t params = LLCL_VECTOR_PARAMS_INIT;
    size_t at = 0;
    for (i = 0; i < LOCALS; i++) {
        locals[i].size = i % 3 == 2 ? 0 : EACH * 2;
        locals[i].place = llcl_local_address(own + at);
        at += locals[i].size;
    }
    for (i = 0; i < REMOTES; i++) {
        remotes[i].size = EACH * 2;
        remotes[i].place = remote_at(shared, peer, 3 + (uint64_t)i * 100);
    }
    params.peer = peer;
    params.locals = locals;
    params.local_count = LOCALS;
    params.remotes = remotes;
    params.remote_count = REMOTES;
    pattern_fill(own, at, 9);
    calls = 0;
    CHECK_OK(llcl_writev(context, &params));
    CHECK(most || calls == 1);
    memset(own, 0, at);
    CHECK_OK(llcl_readv(context, &params));
    CHECK(pattern_holds(own, at, 9));
    fence(context);
}

/* A place that is gone is told, whatever came before it. */
static void gone(llcl_context_t *context, const struct shared *shared, unsigned char *own)
{
    uint32_t peer = 1 - llcl_rank(context);
    llcl_local_span_t local = {0};
    llcl_remote_span_t remotes[2];
    llcl_vector_params_t params = LLCL_VECTOR_PARAMS_INIT;
    local.place = llcl_local_address(own);
    local.size = 16;
    remotes[0].place = shared->remote[peer];
    remotes[1].place = shared->remote[peer];
    remotes[1].place.key = ~remotes[1].place.key;
    remotes[0].size = remotes[1].size = 8;
    params.peer = peer;
    params.locals = &local;
    params.local_count = 1;
    params.remotes = remotes;
    params.remote_count = 2;
    CHECK_STATUS(llcl_writev(context, &params), LLCL_ERR_KEY);
    fence(context);
}

static void run(llcl_context_t *context)
{
    struct shared shared;
    llcl_peer_info_t info = {0};
    unsigned char *own = malloc(SIZE);
    CHECK(own != NULL);
    share(context, REGISTERED, SIZE, &shared);
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, 1 - llcl_rank(context), &info));
    if (info.registered_access != LLCL_ACCESS_KERNEL || info.registered_writes != LLCL_ACCESS_KERNEL) {
        printf("SKIPPED: the kernel does not copy here\n");
    } else {
        boxes(context, &shared, own, 64);
        boxes(context, &shared, own, PIECES);
        lists(context, &shared, own);
        for (most = 1000; most > 100; most = most / 3 + 1) {
            boxes(context, &shared, own, PIECES);
            lists(context, &shared, own);
        }
        most = 0;
        gone(context, &shared, own);
    }
    share_end(context, &shared);
    free(own);
}

TEST_MAIN(run)
