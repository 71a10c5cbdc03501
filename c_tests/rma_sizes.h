/* Shared by the tests of sizes. They try every size around a threshold, odd offsets, allocated and
 * registered memory on both sides, every peer including the rank itself, with and without the
 * command queue. They check the bytes that were moved and those around them. */
#ifndef RMA_SIZES_H
#define RMA_SIZES_H
#include "shared.h"

#define GUARD 16
#define GUARD_BYTE 0xa7

struct transfer {
    uint32_t peer;
    uint32_t flags;
    llcl_local_t local;
    unsigned char *local_bytes;
    llcl_remote_t remote;
    size_t size;
    struct tally *tally;
};

typedef void (*transfer_fn)(llcl_context_t *context, const struct transfer *transfer);

struct sizes_setup {
    llcl_context_t *context;
    transfer_fn post;
    size_t largest;
    struct shared local, exposed;
    size_t slot; /* bytes of `exposed` and `local` for one peer */
};

static inline uint32_t sizes_seed(uint32_t from, uint32_t to, size_t size)
{
    return from * 17 + to * 5 + (uint32_t)size;
}

/* Each rank writes to all ranks. The data of rank r go to slot r of each target. */
static inline void sizes_write(struct sizes_setup *setup, size_t size, size_t near, size_t far,
                               uint32_t flags)
{
    uint32_t me = llcl_rank(setup->context), ranks = llcl_size(setup->context), peer;
    size_t slot = setup->slot;
    struct tally tally = {0, 0, 0};
    memset(setup->local.bytes, 0x11, ranks * slot);
    for (peer = 0; peer < ranks; peer++) {
        unsigned char *mine = setup->exposed.bytes + peer * slot;
        memset(mine, GUARD_BYTE, size + 2 * GUARD + 8);
        pattern_fill(setup->local.bytes + peer * slot + near, size, sizes_seed(me, peer, size));
    }
    fence(setup->context);
    for (peer = 0; peer < ranks; peer++) {
        struct transfer transfer;
        transfer.peer = peer;
        transfer.flags = flags;
        transfer.local = llcl_region_local(setup->local.region, peer * slot + near);
        transfer.local_bytes = setup->local.bytes + peer * slot + near;
        transfer.remote = remote_at(&setup->exposed, peer, me * slot + GUARD + far);
        transfer.size = size;
        transfer.tally = &tally;
        setup->post(setup->context, &transfer);
    }
    AWAIT(&tally.fired, ranks);
    CHECK_EQUAL(tally.failed, 0);
    fence(setup->context);
    for (peer = 0; peer < ranks; peer++) {
        unsigned char *mine = setup->exposed.bytes + peer * slot + GUARD + far;
        CHECK(pattern_holds(mine, size, sizes_seed(peer, me, size)));
        CHECK(bytes_are(mine - GUARD - far, GUARD + far, GUARD_BYTE));
        CHECK(bytes_are(mine + size, GUARD + 8 - far, GUARD_BYTE));
        CHECK(pattern_holds(setup->local.bytes + peer * slot + near, size,
                            sizes_seed(me, peer, size)));
    }
    CHECK_EQUAL(tally.fired, ranks);
    fence(setup->context);
}

/* Each rank reads from all ranks. */
static inline void sizes_read(struct sizes_setup *setup, size_t size, size_t near, size_t far,
                              uint32_t flags)
{
    uint32_t me = llcl_rank(setup->context), ranks = llcl_size(setup->context), peer;
    size_t slot = setup->slot;
    struct tally tally = {0, 0, 0};
    for (peer = 0; peer < ranks; peer++) {
        memset(setup->local.bytes + peer * slot, GUARD_BYTE, size + 2 * GUARD + 8);
        pattern_fill(setup->exposed.bytes + peer * slot + far, size, sizes_seed(me, peer, size));
    }
    fence(setup->context);
    for (peer = 0; peer < ranks; peer++) {
        struct transfer transfer;
        transfer.peer = peer;
        transfer.flags = flags;
        transfer.local = llcl_region_local(setup->local.region, peer * slot + GUARD + near);
        transfer.local_bytes = setup->local.bytes + peer * slot + GUARD + near;
        transfer.remote = remote_at(&setup->exposed, peer, me * slot + far);
        transfer.size = size;
        transfer.tally = &tally;
        setup->post(setup->context, &transfer);
    }
    AWAIT(&tally.fired, ranks);
    CHECK_EQUAL(tally.failed, 0);
    for (peer = 0; peer < ranks; peer++) {
        unsigned char *got = setup->local.bytes + peer * slot + GUARD + near;
        CHECK(pattern_holds(got, size, sizes_seed(peer, me, size)));
        CHECK(bytes_are(got - GUARD - near, GUARD + near, GUARD_BYTE));
        CHECK(bytes_are(got + size, GUARD + 8 - near, GUARD_BYTE));
        CHECK(pattern_holds(setup->exposed.bytes + peer * slot + far, size,
                            sizes_seed(me, peer, size)));
    }
    CHECK_EQUAL(tally.fired, ranks);
    fence(setup->context);
}

typedef void (*sizes_fn)(struct sizes_setup *setup, size_t size, size_t near, size_t far,
                         uint32_t flags);

/* `limit`: the largest size of the operation; it and the two sizes below are tried as well. */
static inline void all_sizes(llcl_context_t *context, sizes_fn one, transfer_fn post, size_t limit)
{
    static const size_t offsets[][2] = {{0, 0}, {1, 0}, {3, 5}};
    struct sizes_setup setup;
    enum { OFFSETS = sizeof offsets / sizeof offsets[0] };
    int local, exposed;
    size_t i, o;
    setup.context = context;
    setup.post = post;
    setup.largest = limit < TEST_LARGEST ? limit : TEST_LARGEST;
    setup.slot = (setup.largest + 2 * GUARD + 8 + 63) / 64 * 64;
    for (local = 0; local < MEMORY_KINDS; local++) {
        for (exposed = 0; exposed < MEMORY_KINDS; exposed++) {
            region_make(context, local, llcl_size(context) * setup.slot, &setup.local);
            share(context, exposed, llcl_size(context) * setup.slot, &setup.exposed);
            for (i = 0; i < TEST_SIZES; i++) {
                size_t size = test_sizes[i] <= limit ? test_sizes[i] : limit - i % 3;
                for (o = 0; o < OFFSETS; o++) {
                    /* Large sizes are slow: the pairs of kinds share the offsets and the ways of
                     * posting. */
                    size_t turn = i + o + (size_t)(local * MEMORY_KINDS + exposed);
                    if (size > 4097 && turn % OFFSETS != 0)
                        continue;
                    if (size <= 4097 || turn / OFFSETS % 2 == 0)
                        one(&setup, size, offsets[o][0], offsets[o][1], 0);
                    if (size <= 4097 || turn / OFFSETS % 2 == 1)
                        one(&setup, size, offsets[o][0], offsets[o][1], LLCL_FLAG_DEFER);
                }
            }
            share_end(context, &setup.exposed);
            region_drop(&setup.local);
        }
    }
}

#endif
