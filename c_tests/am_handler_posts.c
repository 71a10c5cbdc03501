/* Broken if this fails: a handler that posts messages, reads, writes or atomics by the try
 * functions (also to the sender, also with answers that its callbacks wait for) loses one, doubles
 * one or locks the ranks up.
 * ranks: 1 2 3
 * cma: on off
 * policies: acquire limit distributed
 * threads: yes
 */
#include "wild.h"
#include "am.h"

#define STARTED 40u
#define HOPS 30u

enum { HOP, NOTE };

struct rank {
    llcl_context_t *context;
    struct shared targets[MEMORY_KINDS], mine;
    struct later later;
    uint64_t posted, skipped, noted;
    struct tally tally;
    struct ledger ledger;
};

struct hop { /* the header */
    uint32_t origin, number, left;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 16;
}

/* Each hop adds to a word of the origin and writes to one of its own: the try may say "try
 * again". */
static void post_beside(struct rank *rank, const struct hop *hop)
{
    struct wild wild = {0};
    llcl_status_t status;
    uint32_t me = llcl_rank(rank->context);
    wild.tier = TIER_TRY;
    wild.peer = hop->origin;
    wild.local = llcl_region_local(rank->mine.region, 0);
    wild.memory = &rank->mine.words[hop->left % 2 + 2];
    wild.on_complete = count_in(&rank->tally);
    wild.operation = hop->left % 3 == 0 ? WILD_ATOMIC : hop->left % 3 == 1 ? WILD_READ : WILD_VALUE;
    wild.remote = remote_at(&rank->targets[hop->left % MEMORY_KINDS], hop->origin,
                            wild.operation == WILD_ATOMIC ? 0 : 64 + 64 * me);
    status = wild_post(rank->context, &wild);
    CHECK(status >= 0);
    word_add(status == LLCL_OK ? &rank->posted : &rank->skipped, 1);
}

static void hop(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint32_t me = llcl_rank(rank->context), size = llcl_size(rank->context);
    llcl_am_params_t am;
    struct hop at;
    memcpy(&at, am_header(message, NULL), sizeof at);
    post_beside(rank, &at);
    if (at.left == 0) {
        CHECK_EQUAL(at.origin, me);
        ledger_mark(&rank->ledger, 0, at.number);
        return;
    }
    /* One back to where it came from: before the next hop, which may end all. */
    am = am_to(am_source(message), NOTE, NULL, 0);
    am.on_complete = count_in(&rank->tally);
    word_add(&rank->posted, 1);
    later_send(&rank->later, rank->context, &am);
    at.left--;
    am = am_to(at.left == 0 ? at.origin : (me + 1) % size, HOP, &at, sizeof at);
    later_send(&rank->later, rank->context, &am);
}

static void note(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct rank *)data)->noted, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    uint64_t counts[4][2] = {{0}}, mine[2];
    uint64_t over = 0;
    int kind;
    rank->context = context;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, 4096, &rank->targets[kind]);
    region_make(context, ALLOCATED, 4096, &rank->mine);
    later_make(&rank->later);
    ledger_make(&rank->ledger, 1, STARTED);
    am_register(context, HOP, hop, rank);
    am_register(context, NOTE, note, rank);
    fence(context);
    for (i = 0; i < STARTED; i++) {
        struct hop first = {me, i, HOPS};
        llcl_am_params_t am = am_to((me + 1) % size, HOP, &first, sizeof first);
        first.left = HOPS;
        CHECK_OK(llcl_am_async(context, &am));
        later_drain(&rank->later, context);
    }
    /* Others' messages come through here until everything has ended everywhere. */
    while (!over) {
        uint64_t all[4], left;
        later_drain(&rank->later, context);
        llcl_wait_word(context, &rank->ledger.total, STARTED, 1000000);
        left = word_get(&rank->ledger.total) < STARTED || word_get(&rank->tally.fired) != word_get(&rank->posted);
        CHECK_OK(llcl_allgather_bytes(context, &left, sizeof left, all));
        for (over = 1, i = 0; i < size; i++)
            over = over && !all[i];
    }
    /* A rank may have sent the last notes after it had said that nothing was left. */
    later_drain(&rank->later, context);
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    CHECK_EQUAL(rank->tally.failed, 0);
    CHECK_EQUAL(word_get(&rank->ledger.total), STARTED);
    /* As many notes as hops with something left: each hop but the last of a chain. */
    mine[0] = word_get(&rank->noted);
    mine[1] = (uint64_t)STARTED * HOPS;
    CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, counts));
    for (mine[0] = mine[1] = 0, i = 0; i < size; i++) {
        mine[0] += counts[i][0];
        mine[1] += counts[i][1];
    }
    CHECK_EQUAL(mine[0], mine[1]);
    printf("later: %llu, skipped: %llu\n", (unsigned long long)rank->later.count,
           (unsigned long long)rank->skipped);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &rank->targets[kind]);
    region_drop(&rank->mine);
}

TEST_MAIN_CONFIG(run, configure)
