/* Broken if this fails: the address of a region that its owner has freed still reaches memory, also
 * when it was used before and the place has a new owner.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "wild.h"

static void check(llcl_context_t *context, int kind, uint32_t flags)
{
    struct shared old, fresh, mine;
    struct wild wild = {0};
    llcl_atomic_info_t info = LLCL_ATOMIC_INFO_INIT;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    region_make(context, ALLOCATED, 4096, &mine);
    share(context, kind, 4096, &old);
    wild.peer = peer;
    wild.flags = flags;
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = mine.words;
    wild.remote = remote_at(&old, peer, 0);
    wild.signal = remote_at(&old, peer, 128);
    /* Used once while it lives: the caches know it. */
    wild.operation = WILD_FETCH_ADD;
    wild.tier = TIER_BLOCKING;
    CHECK_OK(wild_post(context, &wild));
    fence(context);
    CHECK_OK(llcl_region_free(old.region));
    share(context, kind, 4096, &fresh);
    WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
    CHECK_STATUS(llcl_atomic_query(context, peer, wild.remote, LLCL_OP_ADD, LLCL_TYPE_U64, &info), LLCL_ERR_KEY);
    fence(context);
    CHECK(bytes_are(fresh.bytes, fresh.size, 0));
    /* A living destination and a stale signal word. */
    wild.operation = WILD_SIGNAL;
    wild.tier = TIER_BLOCKING;
    wild.remote = remote_at(&fresh, peer, 0);
    CHECK_STATUS(wild_post(context, &wild), LLCL_ERR_KEY);
    share_end(context, &fresh);
    if (kind == REGISTERED)
        free(old.bytes);
    free(old.remote);
    region_drop(&mine);
}

static void run(llcl_context_t *context)
{
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        check(context, kind, 0);
        check(context, kind, LLCL_FLAG_DEFER);
    }
}

TEST_MAIN(run)
