/* Do segments that a client makes itself, of its own memory and of the library's, take puts, gets,
 * strided accesses, atomics and long messages, at the first endpoint and at further ones? Do
 * messages run the handlers of the endpoint that they were sent to, and replies those of the
 * endpoint that has sent the request? */
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

static gex_EP_t eps[1 + SECONDS];
static gex_Segment_t segments[1 + SECONDS];
static volatile int came[3]; /* replies by kind */

static void check_endpoint(gex_Token_t token, gex_AM_Arg_t index, int is_request) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(info.gex_ep == eps[index]);
    CHECK(info.gex_entry->gex_cdata == &eps[index]);
    EQUAL(info.gex_is_req, is_request);
    EQUAL(info.gex_srcrank, (me + (is_request ? all - 1 : 1)) % all);
}
static void short_reply(gex_Token_t token, gex_AM_Arg_t asker) {
    check_endpoint(token, asker, 0);
    came[0]++;
}
static void short_request(gex_Token_t token, gex_AM_Arg_t at, gex_AM_Arg_t asker, gex_AM_Arg_t a2, gex_AM_Arg_t a3,
                          gex_AM_Arg_t a4, gex_AM_Arg_t a5, gex_AM_Arg_t a6, gex_AM_Arg_t a7, gex_AM_Arg_t a8,
                          gex_AM_Arg_t a9, gex_AM_Arg_t a10, gex_AM_Arg_t a11, gex_AM_Arg_t a12, gex_AM_Arg_t a13,
                          gex_AM_Arg_t a14, gex_AM_Arg_t a15) {
    check_endpoint(token, at, 1);
    EQUAL(a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15, 119);
    gex_AM_ReplyShort1(token, 211, 0, asker);
}
static void medium_reply(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t asker) {
    check_endpoint(token, asker, 0);
    EQUAL(size, 3000);
    EQUAL(((char *)data)[2999], 5);
    came[1]++;
}
static void medium_request(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t at, gex_AM_Arg_t asker) {
    check_endpoint(token, at, 1);
    gex_AM_ReplyMedium1(token, 213, data, size, GEX_EVENT_NOW, 0, asker);
}
static void long_reply(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t asker) {
    check_endpoint(token, asker, 0);
    CHECK((uint64_t *)data == (uint64_t *)gex_Segment_QueryAddr(segments[asker]) + 601);
    EQUAL(*(uint64_t *)data, 77 + size);
    came[2]++;
}
static void long_request(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t at, gex_AM_Arg_t asker,
                         gex_AM_Arg_t low, gex_AM_Arg_t high) {
    uint64_t there = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    check_endpoint(token, at, 1);
    CHECK((uint64_t *)data == (uint64_t *)gex_Segment_QueryAddr(segments[at]) + 600);
    gex_AM_ReplyLong1(token, 215, data, size, (void *)(uintptr_t)there, GEX_EVENT_NOW, 0, asker);
}

/* Each endpoint registers the same handler indices. The entries' client data tell the endpoints
 * apart. */
static void register_at(int index) {
    const gex_Flags_t request = GEX_FLAG_AM_REQUEST, reply = GEX_FLAG_AM_REPLY;
    gex_AM_Entry_t table[] = {
        {210, (gex_AM_Fn_t)short_request, GEX_FLAG_AM_SHORT | request, 16, &eps[index], NULL},
        {211, (gex_AM_Fn_t)short_reply, GEX_FLAG_AM_SHORT | reply, 1, &eps[index], NULL},
        {212, (gex_AM_Fn_t)medium_request, GEX_FLAG_AM_MEDIUM | request, 2, &eps[index], NULL},
        {213, (gex_AM_Fn_t)medium_reply, GEX_FLAG_AM_MEDIUM | reply, 1, &eps[index], NULL},
        {214, (gex_AM_Fn_t)long_request, GEX_FLAG_AM_LONG | request, 4, &eps[index], NULL},
        {215, (gex_AM_Fn_t)long_reply, GEX_FLAG_AM_LONG | reply, 1, &eps[index], NULL}};
    CHECK(gex_EP_RegisterHandlers(eps[index], table, 6) == GASNET_OK);
}

static uint64_t *far_base(gex_TM_t pair, unsigned rank, uintptr_t *size) {
    void *address = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, rank, &address, NULL, size, 0));
    return address;
}

/* Every kind of access to the next rank, at the endpoint of the pair. The rank before does this
 * here. */
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

/* Messages from every endpoint to every endpoint of the next rank. */
static void messages_of_endpoints(void) {
    static char bytes[3000];
    memset(bytes, 5, sizeof bytes);
    for (int from = 0; from <= SECONDS; from++) {
        uint64_t at = (uintptr_t)((uint64_t *)gex_Segment_QueryAddr(segments[from]) + 601);
        for (int to = 0; to <= SECONDS; to++) {
            gex_TM_t pair = gex_TM_Pair(eps[from], (gex_EP_Index_t)to);
            unsigned next = (me + 1) % all;
            uint64_t value = 85, *there = far_base(pair, next, NULL);
            gex_AM_RequestShort16(pair, next, 210, 0, to, from, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            gex_AM_RequestMedium2(pair, next, 212, bytes, sizeof bytes, GEX_EVENT_NOW, 0, to, from);
            gex_AM_RequestLong4(pair, next, 214, &value, 8, there + 600, GEX_EVENT_NOW, 0, to, from, (gex_AM_Arg_t)at,
                                (gex_AM_Arg_t)(at >> 32));
            int pairs = from * (1 + SECONDS) + to + 1;
            GASNET_BLOCKUNTIL(came[0] == pairs && came[1] == pairs && came[2] == pairs);
        }
    }
    barrier();
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
            CHECK(gex_EP_Create(&eps[i], client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM | GEX_EP_CAPABILITY_VIS,
                                0) == GASNET_OK);
        }
        register_at(i);
        EQUAL(gex_EP_QueryIndex(eps[i]), i);
        /* The segment of endpoint 1 is allocated by the library. */
        CHECK(gex_Segment_Create(&segments[i], client, i == 1 ? NULL : own[i], SIZE, GEX_MK_HOST, 0) == GASNET_OK);
        CHECK(gex_EP_BindSegment(eps[i], segments[i], 0) == GASNET_OK && gex_EP_QuerySegment(eps[i]) == segments[i]);
    }
    /* Two calls, over another team, with different endpoints at different ranks. */
    CHECK(gex_EP_PublishBoundSegment(reverse, eps, me % 2, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(reverse, eps + me % 2, 1 + SECONDS - me % 2, 0) == GASNET_OK);
    for (int i = 0; i <= SECONDS; i++) {
        access_all(gex_TM_Pair(ep, (gex_EP_Index_t)i), gex_Segment_QueryAddr(segments[i]));
    }
    messages_of_endpoints();
    messages_and_atomics();
    /* Teams that were made before the segments know these. */
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
