/* Do segments that a client makes itself, of its own memory and of the library's, take puts, gets, strided accesses,
 * atomics and long messages, at the first endpoint and at further ones? */
#include "t.h"

#define SIZE 10000
#define SECONDS 2 /* endpoints beyond the first */

static uint64_t own[1 + SECONDS][SIZE / 8];
static volatile int answered;

static void answer(gex_Token_t token, void *data, size_t size) {
    EQUAL(size, 8);
    EQUAL(*(uint64_t *)data, 1000 + me);
    CHECK(data == &own[0][300]);
    CHECK(token);
    answered = 1;
}
static void ask(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t from, gex_AM_Arg_t low, gex_AM_Arg_t high) {
    uint64_t value = 1000 + (uint64_t)from, there = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    CHECK(data == &own[0][200]);
    EQUAL(size, 16);
    EQUAL(((uint64_t *)data)[1], 77 + (uint64_t)from);
    gex_AM_ReplyLong0(token, 201, &value, 8, (void *)(uintptr_t)there, GEX_EVENT_NOW, 0);
}

static uint64_t *far_base(gex_TM_t pair, unsigned rank, uintptr_t *size) {
    void *address = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, rank, &address, NULL, size, 0));
    return address;
}

/* Every access to the neighbour, at the endpoint of that number; the neighbour before does the same here. */
static void access_all(gex_TM_t pair, uint64_t *mine) {
    unsigned next = (me + 1) % all, before = (me + all - 1) % all;
    uintptr_t size;
    uint64_t *there = far_base(pair, next, &size), got[4] = {0};
    const ptrdiff_t twice = 16, once = 8;
    const size_t three = 3;
    CHECK(there && size >= SIZE);
    gex_RMA_PutBlocking(pair, next, there + 1, &(uint64_t){10 + me}, 8, 0);
    gex_Event_Wait(gex_RMA_PutNB(pair, next, there + 2, &(uint64_t){20 + me}, 8, GEX_EVENT_NOW, 0));
    gex_RMA_PutBlockingVal(pair, next, there + 3, 30 + me, 8, 0);
    gex_RMA_GetBlocking(pair, got, next, there + 1, 24, 0);
    CHECK(got[0] == 10 + me && got[1] == 20 + me && got[2] == 30 + me);
    gex_VIS_StridedPutBlocking(pair, next, there + 10, &twice, got, &once, 8, &three, 1, 0);
    memset(got, 0, sizeof got);
    gex_VIS_StridedGetBlocking(pair, got, &once, next, there + 10, &twice, 8, &three, 1, 0);
    CHECK(got[0] == 10 + me && got[1] == 20 + me && got[2] == 30 + me);
    gex_Memvec_t to[] = {{there + 20, 8}, {there + 30, 16}}, from = {got, 24};
    gex_VIS_VectorPutBlocking(pair, next, 2, to, 1, &from, 0);
    barrier();
    EQUAL(mine[1], 10 + before);
    EQUAL(mine[2], 20 + before);
    EQUAL(mine[3], 30 + before);
    EQUAL(mine[14], 30 + before);
    EQUAL(mine[11], 0);
    EQUAL(mine[20], 10 + before);
    EQUAL(mine[31], 30 + before);
}

static void messages_and_atomics(void) {
    unsigned next = (me + 1) % all;
    uint64_t *there = far_base(tm, next, NULL), pair[2] = {me, 77 + me};
    uint64_t at = (uintptr_t)&own[0][300];
    double half = 0;
    gex_AD_t counter, number;
    gex_AM_RequestLong3(tm, next, 200, pair, 16, there + 200, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)me, (gex_AM_Arg_t)at,
                        (gex_AM_Arg_t)(at >> 32));
    GASNET_BLOCKUNTIL(answered);
    gasnet_memset(next, there + 400, 7, 5000);
    gex_AD_Create(&counter, tm, GEX_DT_U32, GEX_OP_FADD | GEX_OP_GET | GEX_OP_FCAS, 0);
    gex_AD_Create(&number, tm, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_GET, 0);
    uint32_t *words = (uint32_t *)(far_base(tm, 0, NULL) + 1100), last = 0;
    for (int i = 0; i < 100; i++) {
        gex_Event_Wait(gex_AD_OpNB_U32(counter, &last, 0, words, GEX_OP_FADD, 3, 0, 0));
        gex_Event_Wait(gex_AD_OpNB_DBL(number, NULL, 0, words + 2, GEX_OP_ADD, .5, 0, 0));
    }
    barrier();
    EQUAL(own[0][400] & 0xff, 7);
    EQUAL(own[0][400 + 624] >> 56, 7);
    gex_Event_Wait(gex_AD_OpNB_U32(counter, &last, 0, words, GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_DBL(number, &half, 0, words + 2, GEX_OP_GET, 0, 0, 0));
    EQUAL(last, 300 * all);
    EQUAL(half, 50 * all);
    gex_AD_Destroy(counter);
    gex_AD_Destroy(number);
}

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)ask, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, NULL},
                              {201, (gex_AM_Fn_t)answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    gex_EP_t eps[1 + SECONDS];
    gex_Segment_t segments[1 + SECONDS];
    gex_TM_t reverse;
    uintptr_t size = 99;
    CHECK(gex_Client_Init(&client, &ep, &tm, "TEST", NULL, NULL, 0) == GASNET_OK);
    CHECK(gex_EP_RegisterHandlers(ep, table, 2) == GASNET_OK);
    me = gex_TM_QueryRank(tm);
    all = gex_TM_QuerySize(tm);
    far_base(tm, (me + 1) % all, &size);
    EQUAL(size, 0);
    gex_TM_Split(&reverse, tm, 0, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    eps[0] = ep;
    for (int i = 0; i <= SECONDS; i++) {
        if (i) {
            CHECK(gex_EP_Create(&eps[i], client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_VIS, 0) == GASNET_OK);
        }
        EQUAL(gex_EP_QueryIndex(eps[i]), i);
        /* Endpoint 1 has memory of the library's. */
        CHECK(gex_Segment_Create(&segments[i], client, i == 1 ? NULL : own[i], SIZE, GEX_MK_HOST, 0) == GASNET_OK);
        CHECK(gex_EP_BindSegment(eps[i], segments[i], 0) == GASNET_OK && gex_EP_QuerySegment(eps[i]) == segments[i]);
    }
    /* In two calls, over another team, and not the same ones at every rank. */
    CHECK(gex_EP_PublishBoundSegment(reverse, eps, me % 2, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(reverse, eps + me % 2, 1 + SECONDS - me % 2, 0) == GASNET_OK);
    for (int i = 0; i <= SECONDS; i++) {
        access_all(gex_TM_Pair(ep, (gex_EP_Index_t)i), gex_Segment_QueryAddr(segments[i]));
    }
    messages_and_atomics();
    /* Teams made before the segments know them. */
    uint64_t *last = far_base(reverse, 0, &size);
    EQUAL(size, SIZE);
    gex_RMA_PutBlockingVal(reverse, 0, last + 100 + me, 5, 8, 0);
    barrier();
    for (unsigned r = 0; r < all && me == all - 1; r++) {
        EQUAL(own[0][100 + r], 5);
    }
    gex_TM_Destroy(reverse, NULL, 0);
    gex_Segment_Destroy(segments[2], 0);
    EQUAL(gex_EP_QuerySegment(eps[2]), NULL);
    end();
}
