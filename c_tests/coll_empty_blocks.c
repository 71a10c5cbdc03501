/* Broken if this fails: the offset of an empty block is looked at, or an input that lies in a gap
 * of the output is refused, or one that lies in a block is not.
 * ranks: 1 2 3 5
 * modes: auto
 * threads: yes
 */
#include "coll.h"

#define K 4u /* elements of a block */

static __thread llcl_team_t *team;
static __thread struct shared memory;
static __thread uint32_t ranks;

/* Rank r's block of an output in which only even ranks' have elements; what rank `from` sends rank
 * `to`. */
static uint64_t length(uint32_t from, uint32_t to, int operation)
{
    return (operation == ALLTOALL ? from + to : from) % 2 ? 0 : K;
}

static uint64_t element(uint32_t from, uint32_t to, uint32_t i)
{
    return 1 + i + 10 * from + 1000 * to;
}

/* Offsets of empty blocks are anything at all. */
static void anywhere(int operation, uint32_t me)
{
    static const uint64_t far[] = {UINT64_MAX, 999999, UINT64_MAX / 8 + 1, 0};
    uint64_t counts[2][COLL_MOST], offsets[2][COLL_MOST], *send = memory.words, *receive = send + K * COLL_MOST;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan;
    uint32_t p, i;
    for (p = 0; p < ranks; p++) {
        uint32_t to = operation == ALLTOALL ? p : 0;
        uint64_t sent = operation == SCATTER ? length(p, 0, operation) : length(me, p, operation);
        uint64_t got = length(p, me, operation);
        counts[0][p] = sent;
        counts[1][p] = got;
        offsets[0][p] = sent ? K * p : far[(p + me) % 4];
        offsets[1][p] = got ? K * p : far[(p + me + 1) % 4];
        for (i = 0; i < K; i++) {
            send[K * p + i] = operation == SCATTER ? element(0, p, i) : element(me, to, i);
            receive[K * p + i] = 7;
        }
    }
    params.team = team;
    params.type = LLCL_TYPE_U64;
    params.count = length(me, 0, SCATTER);
    params.send = llcl_region_local(memory.region, 0);
    params.receive = llcl_region_local(memory.region, 8 * K * COLL_MOST);
    params.send_counts = counts[0];
    params.send_offsets = offsets[0];
    params.receive_counts = counts[1];
    params.receive_offsets = offsets[1];
    CHECK_OK(coll_init(operation, 1, &params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    for (p = 0; p < ranks; p++)
        for (i = 0; i < K; i++) {
            uint64_t block = operation == SCATTER ? (p ? 0 : params.count) : counts[1][p];
            uint64_t want = operation == SCATTER ? element(0, me, i) : element(p, operation == ALLTOALL ? me : 0, i);
            int here = operation != GATHER || me == 0;
            CHECK_EQUAL(receive[K * p + i], here && block ? want : 7);
        }
    CHECK_OK(llcl_coll_free(plan));
}

/* The output has room for two elements behind each block; the input lies `shift` elements behind
 * the first. */
static void between(uint32_t me, uint64_t count, uint64_t shift, llcl_status_t expected)
{
    uint64_t counts[COLL_MOST], offsets[COLL_MOST];
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    uint32_t p, i;
    for (p = 0; p < ranks; p++) {
        counts[p] = count;
        offsets[p] = (K + 2) * p;
    }
    params.team = team;
    params.type = LLCL_TYPE_U64;
    params.count = count;
    params.send = llcl_region_local(memory.region, 8 * (1 + shift));
    params.receive = llcl_region_local(memory.region, 8);
    params.receive_counts = counts;
    params.receive_offsets = offsets;
    for (i = 0; i < count; i++)
        memory.words[1 + shift + i] = element(me, 0, i);
    CHECK_STATUS(llcl_allgatherv_init(&params, &plan), expected);
    if (expected != LLCL_OK) {
        CHECK(strstr(llcl_last_error(), "send and receive overlap") != NULL);
        return;
    }
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    for (p = 0; p < ranks; p++)
        for (i = 0; i < count; i++)
            CHECK_EQUAL(memory.words[1 + offsets[p] + i], element(p, 0, i));
    for (i = 0; i < count; i++)
        CHECK_EQUAL(memory.words[1 + shift + i], element(me, 0, i));
    CHECK_OK(llcl_coll_free(plan));
}

static void run(llcl_context_t *context)
{
    static const int operations[] = {GATHER, SCATTER, ALLGATHER, ALLTOALL};
    uint32_t me = llcl_rank(context);
    int kind, at;
    ranks = llcl_size(context);
    team = coll_world(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        region_make(context, kind, 4096, &memory);
        for (at = 0; at < 4; at++)
            anywhere(operations[at], me);
        between(me, 2, K, LLCL_OK);
        between(me, 2, K - 2, LLCL_OK);
        between(me, 2, 1, LLCL_ERR_INVALID);
        between(me, K, K - 1, LLCL_ERR_INVALID);
        if (ranks > 1)
            between(me, 3, K, LLCL_ERR_INVALID);
        fence(context);
        region_drop(&memory);
    }
}

TEST_MAIN(run)
