/* Broken if this fails: one of the three tiers of some operation does not do what the other two do:
 * the same effect, complete when the tier says so, each completion once.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "wild.h"

/* What the 8 bytes at `remote` are after each operation, from 40, when `memory` and `local` hold
 * 7. */
static uint64_t effect(int operation)
{
    switch (operation) {
    case WILD_READ: return 40;
    case WILD_ATOMIC: case WILD_FETCH_ADD: return 41;
    case WILD_COMPARE_SWAP: return 40;
    default: return 7;
    }
}

static void check(llcl_context_t *context, struct wild *wild, struct shared *target,
                  struct shared *mine)
{
    struct tally tally = {0, 0, 0};
    uint64_t signal = word_get(&target->words[8]);
    word_set(target->words, 40);
    mine->words[0] = 7;
    mine->words[1] = 7;
    fence(context);
    wild->on_complete = count_in(&tally);
    POST(wild_post(context, wild));
    if (wild->tier != TIER_BLOCKING) {
        AWAIT(&tally.fired, 1);
        CHECK(tally.failed == 0);
    } else {
        /* A blocking call is over when it returns: what it fetched is here. */
        CHECK_EQUAL(tally.fired, 0);
    }
    if (wild->operation == WILD_READ)
        CHECK_EQUAL(mine->words[0], 40);
    if (wild->operation == WILD_FETCH_ADD || wild->operation == WILD_COMPARE_SWAP)
        CHECK_EQUAL(mine->words[1], 40);
    fence(context);
    CHECK_EQUAL(word_get(target->words), effect(wild->operation));
    CHECK_EQUAL(word_get(&target->words[8]), signal + (wild->operation == WILD_SIGNAL));
    CHECK_EQUAL(tally.fired, wild->tier != TIER_BLOCKING);
    fence(context);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), flags;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, mine;
        struct wild wild = {0};
        share(context, kind, 4096, &target);
        region_make(context, kind, 64, &mine);
        wild.peer = (me + 1) % size;
        wild.local = llcl_region_local(mine.region, 0);
        wild.memory = &mine.words[1];
        wild.remote = remote_at(&target, wild.peer, 0);
        wild.signal = remote_at(&target, wild.peer, 64);
        for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++) {
            wild.flags = flags;
            for (wild.operation = 0; wild.operation < WILD_OPERATIONS; wild.operation++)
                for (wild.tier = 0; wild.tier < TIERS; wild.tier++)
                    check(context, &wild, &target, &mine);
        }
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
