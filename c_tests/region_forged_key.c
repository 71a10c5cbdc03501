/* Broken if this fails: an address that no llcl_region_remote ever made reaches memory or ends the
 * process, instead of LLCL_ERR_KEY. Every single bit of a key is turned, and random keys are tried.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "wild.h"

/* A key that some region has is no forgery, whoever made it up. */
static int is_real(const struct shared *a, const struct shared *b, uint32_t peer, uint64_t key)
{
    return a->remote[peer].key == key || b->remote[peer].key == key;
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    struct wild wild = {0};
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) + llcl_rank(context);
    int kind, bit, round;
    share(context, ALLOCATED, 4096, &mine);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, 4096, &target);
        wild.peer = peer;
        wild.local = llcl_region_local(mine.region, 0);
        wild.memory = mine.words;
        wild.signal = remote_at(&target, peer, 128);
        for (bit = 0; bit < 64; bit++) {
            wild.flags = bit % 2 ? LLCL_FLAG_DEFER : 0;
            wild.remote = remote_at(&target, peer, 0);
            wild.remote.key ^= UINT64_C(1) << bit;
            if (is_real(&mine, &target, peer, wild.remote.key))
                continue;
            WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
            CHECK(llcl_remote_pointer(context, peer, wild.remote, 8) == NULL);
        }
        for (round = 0; round < 200; round++) {
            wild.remote.key = random_next(&state);
            if (is_real(&mine, &target, peer, wild.remote.key))
                continue;
            WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
        }
        wild.remote.key = 0;
        WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
        wild.remote.key = UINT64_MAX;
        WILD_REFUSED(context, &wild, LLCL_ERR_KEY);
        fence(context);
        CHECK(bytes_are(target.bytes, target.size, 0));
        share_end(context, &target);
    }
    share_end(context, &mine);
}

TEST_MAIN(run)
