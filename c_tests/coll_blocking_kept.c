/* Broken if this fails: a blocking collective makes a plan for each call, or forgets or keeps too
 * many; or a call with other buffers than the one before (elsewhere, mapped at some ranks and not
 * at others, in a region that is new) has a wrong result; or a call that one rank alone cannot make
 * leaves the others waiting.
 * ranks: 2 3
 * modes: auto
 * engines: offload thread
 * threads: 2
 */
#include "coll.h"

#define KEPT 3u

static llcl_stats_t stats_of(llcl_context_t *context)
{
    llcl_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    CHECK_OK(llcl_stats_get(context, &stats));
    return stats;
}

static void once(const struct coll_case *asked, struct coll_memory *send, struct coll_memory *receive)
{
    struct coll_run run;
    coll_prepare(&run, asked, send, receive);
    coll_fill(&run);
    CHECK_OK(coll_now(asked->operation, 0, &run.params));
    coll_verify(&run);
    coll_forget(&run);
}

/* Every operation with buffers that wander, in allocated and in registered memory, alike at all
 * ranks or not. */
static void wander(llcl_context_t *context, struct coll_case *asked)
{
    struct coll_memory memory[MEMORY_KINDS], fresh;
    uint32_t rank = llcl_rank(context), round, size;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 21, &memory[ALLOCATED]);
    coll_memory_make(context, REGISTERED, (size_t)1 << 21, &memory[REGISTERED]);
    for (asked->operation = BROADCAST; asked->operation < OPERATIONS; asked->operation++)
        for (size = 0; size < 2; size++) {
            llcl_stats_t before = stats_of(context), after;
            asked->count = size == 0 ? 5 : 3000;
            for (round = 0; round < 6; round++) {
                int one = round >= 2 && (round + rank) % 2, other = round >= 4 && (round / 2 + rank) % 2;
                asked->seed++;
                if (round == 3) {
                    coll_memory_make(context, ALLOCATED, (size_t)1 << 18, &fresh);
                    once(asked, &fresh, &fresh);
                    fence(context);
                    region_drop(&fresh.shared);
                } else
                    once(asked, &memory[one], &memory[other]);
                memory[one].used = memory[other].used = round * 192;
            }
            memory[0].used = memory[1].used = 0;
            after = stats_of(context);
            CHECK_EQUAL(after.coll_cache_misses - before.coll_cache_misses, 1);
            CHECK_EQUAL(after.coll_cache_hits - before.coll_cache_hits, 5);
        }
    fence(context);
    region_drop(&memory[0].shared);
    region_drop(&memory[1].shared);
}

/* The plan that was used least recently goes. */
static void displaced(llcl_context_t *context, struct coll_case *asked)
{
    static const struct {
        uint64_t count;
        int hits;
    } calls[] = {{1, 0}, {2, 0}, {3, 0}, {1, 1}, {4, 0}, {1, 1}, {3, 1}, {2, 0}, {1, 1}, {4, 0}};
    struct coll_memory memory;
    size_t i;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 16, &memory);
    asked->operation = ALLREDUCE;
    for (i = 0; i < sizeof calls / sizeof *calls; i++) {
        llcl_stats_t before = stats_of(context), after;
        asked->count = 100 + calls[i].count;
        asked->seed++;
        memory.used = 0;
        once(asked, &memory, &memory);
        after = stats_of(context);
        CHECK_EQUAL(after.coll_cache_hits - before.coll_cache_hits, calls[i].hits);
        CHECK_EQUAL(after.coll_cache_misses - before.coll_cache_misses, !calls[i].hits);
    }
    fence(context);
    region_drop(&memory.shared);
}

/* The last rank's buffer is none: its call is refused, and the others are told that the plan has
 * failed, until others have displaced it. */
static void refused(llcl_context_t *context, struct coll_case *asked)
{
    struct coll_memory memory;
    struct coll_run run;
    uint32_t i;
    coll_memory_make(context, ALLOCATED, (size_t)1 << 16, &memory);
    asked->operation = ALLREDUCE;
    asked->count = 7;
    once(asked, &memory, &memory);
    coll_prepare(&run, asked, &memory, &memory);
    if (run.me == run.ranks - 1)
        run.params.receive.key = ~run.params.receive.key;
    CHECK_STATUS(coll_now(asked->operation, 0, &run.params), LLCL_ERR_KEY);
    if (run.me == run.ranks - 1)
        run.params.receive.key = ~run.params.receive.key;
    CHECK_STATUS(coll_now(asked->operation, 0, &run.params), LLCL_ERR_KEY);
    coll_forget(&run);
    for (i = 0; i < KEPT; i++) {
        asked->count++;
        once(asked, &memory, &memory);
    }
    asked->count = 7;
    once(asked, &memory, &memory);
    fence(context);
    region_drop(&memory.shared);
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    llcl_team_t *world = coll_world(context);
    CHECK_OK(llcl_team_split(world, 1, llcl_rank(context), &asked.team));
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    wander(context, &asked);
    displaced(context, &asked);
    refused(context, &asked);
    CHECK_OK(llcl_team_free(asked.team));
}

int main(void)
{
    CHECK(setenv("LLCL_COLL_CACHE", "3", 1) == 0);
    return test_main(run, NULL);
}
