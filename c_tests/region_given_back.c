/* Broken if this fails: memory of freed regions that living peers have used is never used again, so
 * that a program which shares and frees regions comes to the limit of file sizes; a region that is
 * made of it does not read as zero; or a write of a peer's goes to another region; or
 * llcl_stats_t::owner_requests counts the requests by which the memory comes back.
 * ranks: 2 3
 * modes: auto direct
 * timeout: 40
 */
#include "shared.h"

#define MIB (1u << 20)
#define ROUNDS 1000u
/* Room for what a rank needs itself, and for a few regions. */
#define LIMIT (32u * MIB)

/* Words of a rank's part: where rank 0's region is, the round that is told, and who has done it. */
enum { KEY, OFFSET, TOLD, DONE };

static void put(llcl_context_t *context, uint32_t peer, llcl_remote_t place, uint64_t value)
{
    llcl_write_value_params_t params = {0};
    params.peer = peer;
    params.size = 8;
    params.value = value;
    params.destination = place;
    CHECK_OK(llcl_write_value(context, &params));
}

static void owner_round(llcl_context_t *context, const struct shared *shared, uint64_t round)
{
    llcl_region_t *region = NULL;
    uint32_t peer, peers = llcl_size(context);
    llcl_remote_t start;
    uint64_t *words;
    CHECK_OK(llcl_region_allocate(context, MIB, 0, &region));
    words = llcl_region_address(region);
    start = llcl_region_remote(region, 0);
    for (peer = 1; peer < peers; peer++) {
        CHECK_EQUAL(words[peer], 0);
        CHECK_EQUAL(words[MIB / 8 - peer], 0);
        put(context, peer, remote_at(shared, peer, 8 * KEY), start.key);
        put(context, peer, remote_at(shared, peer, 8 * OFFSET), start.offset);
        put(context, peer, remote_at(shared, peer, 8 * TOLD), round);
    }
    for (peer = 1; peer < peers; peer++) {
        CHECK_OK(llcl_wait_word(context, &shared->words[DONE + peer], round, -1));
        CHECK_EQUAL(words[peer], round);
        CHECK_EQUAL(words[MIB / 8 - peer], round);
    }
    CHECK_OK(llcl_region_free(region));
}

static void user_round(llcl_context_t *context, const struct shared *shared, uint64_t round)
{
    uint32_t me = llcl_rank(context);
    llcl_remote_t start;
    CHECK_OK(llcl_wait_word(context, &shared->words[TOLD], round, -1));
    start.key = shared->words[KEY];
    start.offset = shared->words[OFFSET];
    put(context, 0, llcl_at(start, 8 * me), round);
    put(context, 0, llcl_at(start, MIB - 8 * me), round);
    put(context, 0, remote_at(shared, 0, 8 * (DONE + me)), round);
}

/* The questions by which the library gets its memory back are not the program's. */
static void none_counted(llcl_context_t *context)
{
    llcl_stats_t stats = LLCL_STATS_INIT;
    CHECK_OK(llcl_stats_get(context, &stats));
    CHECK_EQUAL(stats.owner_requests, 0);
}

static void run(llcl_context_t *context)
{
    struct shared shared;
    uint64_t round;
    test_limit_files(LIMIT);
    share(context, ALLOCATED, 4096, &shared);
    for (round = 1; round <= ROUNDS; round++)
        (llcl_rank(context) == 0 ? owner_round : user_round)(context, &shared, round);
    none_counted(context);
    share_end(context, &shared);
}

TEST_MAIN(run)
