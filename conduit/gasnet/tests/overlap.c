/* Can the callers of broadcasts and reductions continue before the operation has ended: with
 * messages while a rank is missing, with other collectives of the same team and of others, and
 * with further operations of the same kind? */
#include "t.h"

#define MANY 7
#define LONG (3 << 18) /* doubles; more than one round */

static volatile int asked, answered;
static void answer(gex_Token_t token) { answered += token != NULL; }
static void ask(gex_Token_t token) {
    asked++;
    gex_AM_ReplyShort0(token, 201, 0);
}

/* All ranks but rank 0 begin. Rank 0 joins them after each of them has answered a message. */
static void late_rank(void (*collective)(gex_TM_t)) {
    answered = 0;
    if (me) {
        collective(tm);
        return;
    }
    for (unsigned r = 1; r < all; r++) {
        gex_AM_RequestShort0(tm, r, 200, 0);
    }
    GASNET_BLOCKUNTIL(answered == (int)all - 1);
    collective(tm);
}
static void first_broadcast(gex_TM_t team) {
    uint64_t value = me ? 0 : 123;
    gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, &value, &value, sizeof value, 0));
    EQUAL(value, 123);
}
static void split(gex_TM_t team) {
    gex_TM_t part;
    gex_TM_Split(&part, team, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    first_broadcast(part);
    gex_TM_Destroy(part, NULL, 0);
}
static void publish(gex_TM_t team) { CHECK(gex_EP_PublishBoundSegment(team, &ep, 1, 0) == GASNET_OK); }

static void many_at_once(gex_TM_t other) {
    gex_Event_t events[4 * MANY];
    uint64_t sums[MANY], sources[MANY], values[MANY], highest[MANY];
    unsigned high = gex_TM_QuerySize(other) - 1, rank = gex_TM_QueryRank(other);
    for (unsigned i = 0; i < MANY; i++) {
        sources[i] = i * 100 + me;
        values[i] = me == i % all ? 55 + i : 0;
        highest[i] = rank + i;
        events[4 * i] = gex_Coll_ReduceToAllNB(tm, &sums[i], &sources[i], GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
        events[4 * i + 1] = gex_Coll_BroadcastNB(tm, i % all, &values[i], &values[i], 8, 0);
        events[4 * i + 2] = gex_Coll_ReduceToOneNB(other, high, &highest[i], &highest[i], GEX_DT_U64, 8, 1,
                                                   GEX_OP_MAX, NULL, NULL, 0);
        events[4 * i + 3] = gex_Coll_BarrierNB(i % 2 ? tm : other, 0);
    }
    gex_Event_WaitAll(events, 4 * MANY, 0);
    for (unsigned i = 0; i < MANY; i++) {
        EQUAL(sums[i], all * i * 100 + all * (all - 1) / 2);
        EQUAL(values[i], 55 + i);
        EQUAL(highest[i], i + (rank == high ? high : rank));
    }
}

/* Two long operations are under way at once, in different buffers. The caller waits for the later
 * one first. */
static void long_ones(void) {
    double *in[2], *out[2];
    gex_Event_t events[2];
    for (int k = 0; k < 2; k++) {
        in[k] = malloc(LONG * sizeof **in);
        out[k] = malloc(LONG * sizeof **out);
        CHECK(in[k] && out[k]);
        for (int i = 0; i < LONG; i++) {
            in[k][i] = k + me + i % 1000;
        }
    }
    for (int k = 0; k < 2; k++) {
        events[k] = gex_Coll_ReduceToAllNB(tm, out[k], in[k], GEX_DT_DBL, 8, LONG - k, GEX_OP_ADD, NULL, NULL, 0);
    }
    while (gex_Event_Test(events[1])) {
        gasnet_AMPoll();
    }
    gex_Event_Wait(events[0]);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < LONG - k; i++) {
            CHECK(out[k][i] == (double)(all * (unsigned)(k + i % 1000) + all * (all - 1) / 2));
        }
        free(in[k]);
        free(out[k]);
    }
}

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    gex_TM_t half;
    begin(table, 2);
    late_rank(first_broadcast);
    late_rank(split);
    late_rank(publish);
    gex_TM_Split(&half, tm, (int)me % 2, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (int round = 0; round < 10; round++) {
        many_at_once(half);
    }
    long_ones();
    /* More shapes than a team keeps plans. */
    for (size_t size = 1; size <= 40; size++) {
        char from[40] = {0}, to[40] = {0};
        memset(from, (int)size, me ? 0 : size);
        gex_Event_t first = gex_Coll_BroadcastNB(tm, 0, to, from, size, 0);
        gex_Event_Wait(gex_Coll_BroadcastNB(tm, 0, from, from, size, 0));
        gex_Event_Wait(first);
        CHECK(to[0] == (char)size && to[size - 1] == (char)size && from[size - 1] == (char)size);
    }
    gex_TM_Destroy(half, NULL, 0);
    end();
}
