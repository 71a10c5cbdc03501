/* Broken if this fails: an access that leaves the peer's region by one byte, or whose end
 * overflows, is carried out.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "wild.h"

static void sized(llcl_context_t *context, struct shared *target, struct shared *mine, uint32_t peer,
                  uint64_t offset, size_t size, llcl_status_t expected)
{
    llcl_read_params_t read = {0};
    llcl_write_params_t write = {0};
    read.peer = write.peer = peer;
    read.size = write.size = size;
    read.source = write.destination = remote_at(target, peer, offset);
    read.destination = write.source = llcl_region_local(mine->region, 0);
    CHECK_STATUS(llcl_read(context, &read), expected);
    CHECK_STATUS(llcl_write(context, &write), expected);
    read.flags = write.flags = LLCL_FLAG_DEFER;
    CHECK_STATUS(llcl_read(context, &read), expected);
    CHECK_STATUS(llcl_write(context, &write), expected);
}

static void run(llcl_context_t *context)
{
    /* 8 bytes from here; all aligned, so that the atomics' answer is about the range. */
    static const uint64_t outside[] = {1000, 1024, 1 << 20, UINT64_C(1) << 32, UINT64_C(1) << 63,
                                       UINT64_MAX - 7, UINT64_MAX - 1023};
    struct shared target, mine;
    struct wild wild = {0};
    llcl_atomic_info_t info = LLCL_ATOMIC_INFO_INIT;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    size_t i;
    int kind;
    region_make(context, ALLOCATED, 8192, &mine);
    wild.peer = peer;
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = mine.words;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        /* Not a multiple of the page: what is behind the end is mapped, but nobody's. */
        share(context, kind, 1000, &target);
        for (i = 0; i < sizeof outside / sizeof outside[0]; i++) {
            wild.remote = remote_at(&target, peer, outside[i]);
            wild.signal = remote_at(&target, peer, 0);
            wild.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
            WILD_REFUSED(context, &wild, LLCL_ERR_RANGE);
            CHECK_STATUS(llcl_atomic_query(context, peer, wild.remote, LLCL_OP_ADD, LLCL_TYPE_U64, &info),
                         LLCL_ERR_RANGE);
            CHECK(llcl_remote_pointer(context, peer, wild.remote, 8) == NULL);
            /* Data inside, signal outside: nothing of it may happen. */
            wild.remote = remote_at(&target, peer, 8);
            wild.signal = remote_at(&target, peer, outside[i]);
            wild.operation = WILD_SIGNAL;
            wild.tier = TIER_BLOCKING;
            mine.words[0] = 99;
            CHECK_STATUS(wild_post(context, &wild), LLCL_ERR_RANGE);
        }
        memset(mine.bytes, 0, 8192);
        sized(context, &target, &mine, peer, 0, 1000, LLCL_OK);
        sized(context, &target, &mine, peer, 0, 1001, LLCL_ERR_RANGE);
        sized(context, &target, &mine, peer, 999, 2, LLCL_ERR_RANGE);
        sized(context, &target, &mine, peer, 8, SIZE_MAX, LLCL_ERR_RANGE);
        sized(context, &target, &mine, peer, 8, SIZE_MAX - 7, LLCL_ERR_RANGE);
        sized(context, &target, &mine, peer, UINT64_MAX, 1, LLCL_ERR_RANGE);
        sized(context, &target, &mine, peer, UINT64_MAX, 2, LLCL_ERR_RANGE);
        fence(context);
        CHECK(bytes_are(target.bytes, 1000, 0));
        share_end(context, &target);
    }
    region_drop(&mine);
}

TEST_MAIN(run)
