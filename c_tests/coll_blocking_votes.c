/* Broken if this fails: a blocking v form makes a plan for each call, or ranks of which one alone
 * has changed its offsets do not come to the same plan; or a blocking reduction by the user's
 * function makes a plan for each call, or calls the function or passes the data of an earlier call;
 * or a call without a function at one rank leaves the others waiting.
 * ranks: 2 3
 * modes: auto
 * engines: offload thread
 * threads: 2
 */
#include "coll.h"

enum { MOST = 8, ROOM = 256 };

typedef struct buffers {
    llcl_region_t *send, *receive;
    uint32_t *from, *to;
    llcl_coll_params_t params;
} buffers_t;

/* Of the rank: ranks may be threads. */
static __thread llcl_context_t *world;
static __thread uint32_t me, ranks;

/* Calls until now that have found their plan, and that have made one. */
static void calls(uint64_t *found, uint64_t *made)
{
    llcl_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    CHECK_OK(llcl_stats_get(world, &stats));
    *found = stats.coll_cache_hits;
    *made = stats.coll_cache_misses;
}

static uint64_t count_of(uint32_t from, uint32_t to) { return 1 + from + 2 * to; }

/* An alltoallv; `shift`: the last rank alone puts what it gets so much further on. */
static void exchange(buffers_t *b, uint32_t shift, uint32_t round, int found)
{
    uint64_t send_counts[MOST], send_offsets[MOST], receive_counts[MOST], receive_offsets[MOST];
    uint64_t before[2], after[2], out = 0, in = me + 1 == ranks ? shift : 0;
    uint32_t p, i;
    for (p = 0; p < ranks; p++) {
        send_counts[p] = count_of(me, p);
        receive_counts[p] = count_of(p, me);
        send_offsets[p] = out;
        receive_offsets[p] = in;
        for (i = 0; i < send_counts[p]; i++)
            b->from[out + i] = 1000 * round + 100 * me + 10 * p + i;
        out += send_counts[p];
        in += receive_counts[p] + 1;
    }
    b->params.send_counts = send_counts;
    b->params.send_offsets = send_offsets;
    b->params.receive_counts = receive_counts;
    b->params.receive_offsets = receive_offsets;
    calls(&before[0], &before[1]);
    CHECK_OK(llcl_alltoallv(&b->params));
    calls(&after[0], &after[1]);
    CHECK_EQUAL(after[0] - before[0], found);
    CHECK_EQUAL(after[1] - before[1], !found);
    for (p = 0; p < ranks; p++)
        for (i = 0; i < receive_counts[p]; i++)
            CHECK_EQUAL(b->to[receive_offsets[p] + i], 1000 * round + 100 * p + 10 * me + i);
}

static void votes(buffers_t *b)
{
    static const struct {
        uint32_t shift;
        int found;
    } rounds[] = {{0, 0}, {0, 1}, {1, 0}, {0, 1}, {1, 1}, {1, 1}, {7, 0}, {0, 1}};
    uint32_t round;
    b->params.op = LLCL_OP_ADD; /* no matter */
    for (round = 0; round < sizeof rounds / sizeof *rounds; round++)
        exchange(b, rounds[round].shift, round, rounds[round].found);
}

static void add(const void *left, const void *right, void *to, uint64_t count, void *data)
{
    const uint32_t *l = left, *r = right;
    uint32_t *t = to;
    uint64_t i;
    for (i = 0; i < count; i++)
        t[i] = l[i] + r[i] + *(uint32_t *)data;
}

static void multiply(const void *left, const void *right, void *to, uint64_t count, void *data)
{
    const uint32_t *l = left, *r = right;
    uint32_t *t = to;
    uint64_t i;
    for (i = 0; i < count; i++)
        t[i] = l[i] * r[i] * *(uint32_t *)data;
}

static void functions(buffers_t *b)
{
    uint32_t round, rank, expected, data[4] = {1, 20, 3, 4};
    uint64_t before[2], after[2];
    b->params.op = LLCL_OP_USER;
    b->params.count = 1;
    for (round = 0; round < 4; round++) {
        b->params.function = round < 2 ? add : multiply;
        b->params.function_data = &data[round];
        b->from[0] = me + 2;
        for (rank = 1, expected = 2; rank < ranks; rank++)
            expected = round < 2 ? expected + rank + 2 + data[round] : expected * (rank + 2) * data[round];
        calls(&before[0], &before[1]);
        CHECK_OK(llcl_allreduce(&b->params));
        calls(&after[0], &after[1]);
        CHECK_EQUAL(b->to[0], expected);
        CHECK_EQUAL(after[0] - before[0], round > 0);
        CHECK_EQUAL(after[1] - before[1], round == 0);
    }
    b->params.function = me == 0 ? NULL : multiply;
    CHECK_STATUS(llcl_allreduce(&b->params), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    buffers_t b;
    memset(&b, 0, sizeof b);
    world = context;
    me = llcl_rank(context);
    ranks = llcl_size(context);
    CHECK(ranks <= MOST);
    CHECK_OK(llcl_region_allocate(context, ROOM * sizeof *b.from, 0, &b.send));
    CHECK_OK(llcl_region_allocate(context, ROOM * sizeof *b.to, 0, &b.receive));
    b.from = llcl_region_address(b.send);
    b.to = llcl_region_address(b.receive);
    b.params.team = coll_world(context);
    b.params.send = llcl_region_local(b.send, 0);
    b.params.receive = llcl_region_local(b.receive, 0);
    b.params.type = LLCL_TYPE_U32;
    votes(&b);
    functions(&b);
    fence(context);
    CHECK_OK(llcl_region_free(b.send));
    CHECK_OK(llcl_region_free(b.receive));
}

int main(void) { return test_main(run, NULL); }
