/* Does each misuse end the job with a sentence? The first argument chooses the misuse; tests/run
 * looks for the sentence. Without an argument the test checks errors that are codes. */
#include "t.h"

static const char *how;
static void reply(gex_Token_t token) {
    if (!strcmp(how, "reply to a reply")) {
        gex_AM_ReplyShort0(token, 201, 0);
    } else if (!strcmp(how, "request in a reply handler")) {
        gex_AM_RequestShort0(tm, all - 1, 200, 0);
    }
}
static void request(gex_Token_t token) {
    static char bytes[100000];
    if (!strcmp(how, "request in a handler")) {
        gex_AM_RequestShort0(tm, 0, 200, 0);
    } else if (!strcmp(how, "no reply handler")) {
        gex_AM_ReplyShort0(token, 223, 0);
        return;
    } else if (!strcmp(how, "too large a reply")) {
        gex_AM_ReplyMedium0(token, 201, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    } else if (!strcmp(how, "a reply outside")) {
        gex_AM_ReplyLong0(token, 201, bytes, 2, base_of(0) + SEGMENT - 1, GEX_EVENT_NOW, 0);
    }
    gex_AM_ReplyShort0(token, 201, 0);
    if (!strcmp(how, "two replies")) {
        gex_AM_ReplyShort0(token, 201, 0);
    }
}

static void codes(gex_AM_Entry_t *table) {
    gex_Segment_t other;
    gex_MK_t kind;
    gex_EP_t second, eps[GASNET_MAXEPS];
    gex_System_SetVerboseErrors(0);
    EQUAL(gex_EP_RegisterHandlers(ep, table, 1), GASNET_ERR_BAD_ARG);
    EQUAL(gex_Segment_Attach(&other, tm, SEGMENT), GASNET_ERR_RESOURCE);
    EQUAL(gex_MK_Create(&kind, client, NULL, 0), GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_Create(&second, client, 0, 0), GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_ALL, 0), GASNET_ERR_BAD_ARG);
    for (int i = 1; i < GASNET_MAXEPS; i++) {
        EQUAL(gex_EP_Create(&eps[i], client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
    }
    EQUAL(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0), GASNET_ERR_RESOURCE);
    EQUAL(gex_EP_RegisterHandlers(eps[1], table, 1), GASNET_ERR_BAD_ARG);
    EQUAL(gex_Segment_Create(&other, client, NULL, 0, GEX_MK_HOST, 0), GASNET_ERR_BAD_ARG);
    EQUAL(gex_Segment_Create(&other, client, NULL, gasnet_getMaxLocalSegmentSize() + 1, GEX_MK_HOST, 0),
          GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_BindSegment(ep, segment, 0), GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_BindSegment(eps[1], GEX_SEGMENT_INVALID, 0), GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_BindSegment(eps[1], segment, 1), GASNET_ERR_BAD_ARG);
    EQUAL(gex_EP_PublishBoundSegment(tm, eps + 1, 1, 1), GASNET_ERR_BAD_ARG);
    EQUAL(gasnet_set_waitmode(99), GASNET_ERR_BAD_ARG);
    CHECK(!strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY"));
    end();
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    static char bytes[100000];
    gex_EP_t second;
    how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "before the job")) {
        gasnet_AMPoll();
    }
    begin(table, 2);
    if (!*how) {
        codes(table);
    } else if (me == 0 && !strcmp(how, "no handler")) {
        gex_AM_RequestShort0(tm, all - 1, 222, 0);
    } else if (me == 0 && !strcmp(how, "wrong arguments")) {
        gex_AM_RequestShort1(tm, all - 1, 200, 0, 1);
    } else if (me == 0 && !strcmp(how, "too large")) {
        gex_AM_RequestMedium0(tm, all - 1, 200, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    } else if (me == 0 && !strcmp(how, "outside")) {
        gex_RMA_PutBlocking(tm, all - 1, base_of(all - 1) + SEGMENT - 1, bytes, 2, 0);
    } else if (me == 0 && !strcmp(how, "a get outside")) {
        gex_RMA_GetBlocking(tm, bytes, all - 1, base_of(all - 1) - 1, 2, 0);
    } else if (me == 0 && !strcmp(how, "memset outside")) {
        gasnet_memset(all - 1, base_of(all - 1) + SEGMENT - 1, 0, 2);
    } else if (me == 0 && !strcmp(how, "a long message outside")) {
        gex_AM_RequestLong0(tm, all - 1, 200, bytes, 2, base_of(all - 1) + SEGMENT - 1, GEX_EVENT_NOW, 0);
    } else if (me == 0 && !strcmp(how, "a strided put outside")) {
        size_t count = 2;
        ptrdiff_t near = 1, far = SEGMENT;
        gex_VIS_StridedPutBlocking(tm, all - 1, base_of(all - 1), &far, bytes, &near, 1, &count, 1, 0);
    } else if (me == 0 && !strcmp(how, "a strided put beyond memory")) {
        size_t count[] = {2, ((size_t)1 << 60) + 1}; /* The product wraps to 0. */
        ptrdiff_t near[] = {1, 0}, far[] = {1, 16};
        gex_VIS_StridedPutBlocking(tm, all - 1, base_of(all - 1), far, bytes, near, 1, count, 2, 0);
    } else if (me == 0 && !strcmp(how, "too many levels")) {
        size_t count[65];
        ptrdiff_t strides[65] = {0};
        for (int i = 0; i < 65; i++) {
            count[i] = 1;
        }
        gex_VIS_StridedPutBlocking(tm, all - 1, base_of(all - 1), strides, bytes, strides, 1, count, 65, 0);
    } else if (!strcmp(how, "the color of no team")) {
        gex_TM_t part;
        gex_TM_Split(&part, tm, -1, (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    } else if (me == 0 && !strcmp(how, "an atomic outside")) {
        gex_AD_t ad;
        gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_ADD, 0);
        gex_AD_OpNBI_U64(ad, NULL, all - 1, base_of(all - 1) + SEGMENT, GEX_OP_ADD, 1, 0, 0);
    } else if (me == 0 && !strcmp(how, "a request to no rank")) {
        gex_AM_RequestShort0(tm, all, 200, 0);
    } else if (me == 0 && !strcmp(how, "no such rank")) {
        gex_RMA_PutBlocking(tm, all, base_of(0), bytes, 2, 0);
    } else if (me == 0 && !strcmp(how, "not published")) {
        gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0);
        gex_EP_BindSegment(second, segment, 0);
        gex_RMA_PutBlocking(gex_TM_Pair(ep, 1), all - 1, base_of(all - 1), bytes, 2, 0);
    } else if (me == 0 && !strcmp(how, "message to a second endpoint")) {
        gex_EP_Create(&second, client, GEX_EP_CAPABILITY_AM, 0);
        gex_AM_RequestShort0(gex_TM_Pair(second, 2), all - 1, 200, 0);
    } else if (!strcmp(how, "an endpoint without messages")) {
        gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0);
        barrier(); /* the peer has endpoint 1, too */
        gex_AM_RequestShort0(gex_TM_Pair(ep, 1), all - 1, 200, 0);
    } else if (me == 0 && !strcmp(how, "from an endpoint without messages")) {
        gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0);
        gex_AM_RequestShort0(gex_TM_Pair(second, 0), all - 1, 200, 0);
    } else if (me == 0 && !strcmp(how, "barrier of a pair")) {
        gex_Coll_BarrierNB(gex_TM_Pair(ep, 0), 0);
    } else if (me == 0 && !strcmp(how, "attached segment")) {
        gex_Segment_Destroy(segment, 0);
    } else if (me == 0 && !strcmp(how, "no function")) {
        gex_Coll_ReduceToAllNB(tm, bytes, bytes, GEX_DT_I32, 4, 1, GEX_OP_USER, NULL, NULL, 0);
    } else if (me == 0 && !strcmp(how, "no sync flag")) {
        gasnet_coll_gather_all(GASNET_TEAM_ALL, NULL, NULL, 8, GASNET_COLL_LOCAL | GASNET_COLL_OUT_MYSYNC);
    } else if (me == 0 && !strcmp(how, "no such image")) {
        gasnet_coll_broadcast(GASNET_TEAM_ALL, NULL, all, NULL, 8, GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC);
    } else if (!strcmp(how, "named barrier of a team")) {
        gex_TM_t part;
        gex_TM_Split(&part, tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        gasnet_coll_barrier(part, 0, 0);
    } else if (me == 0 && !strcmp(how, "two notifies")) {
        gasnet_barrier_notify(0, 0);
        gasnet_barrier_notify(0, 0);
    } else if (me == 0 && !strcmp(how, "no notify")) {
        gasnet_barrier_wait(0, 0);
    } else if (me == 0 && !strcmp(how, "region in a region")) {
        gex_NBI_BeginAccessRegion(0);
        gex_NBI_BeginAccessRegion(0);
    } else if (me == 0 && !strcmp(how, "two prepares")) {
        gex_AM_PrepareRequestMedium(tm, all - 1, NULL, 1, 1, NULL, 0, 0);
        gex_AM_PrepareRequestMedium(tm, all - 1, NULL, 1, 1, NULL, 0, 0);
    } else if (me == 0 && !strcmp(how, "larger than prepared")) {
        gex_AM_CommitRequestMedium0(gex_AM_PrepareRequestMedium(tm, all - 1, NULL, 1, 8, NULL, 0, 0), 200, 9);
    } else if (me == 0 && !strcmp(how, "cancelled")) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, all - 1, NULL, 1, 8, NULL, 0, 0);
        gex_AM_CancelRequestMedium(sd, 0);
        gex_AM_CommitRequestMedium0(sd, 200, 8);
    } else if (me == 0 && !strcmp(how, "another cancel")) {
        gex_AM_CancelRequestLong(gex_AM_PrepareRequestMedium(tm, all - 1, NULL, 1, 8, NULL, 0, 0), 0);
    } else if (me == 0 && !strcmp(how, "wrong domain")) {
        gex_AD_t ad;
        gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD, 0);
        gex_AD_OpNBI_U64(ad, NULL, all - 1, base_of(all - 1), GEX_OP_XOR, 1, 0, 0);
    } else if (me == 0 && !strcmp(how, "the event of nothing")) {
        gex_Event_Wait(GEX_EVENT_NO_OP);
    } else if (me == 0 && !strcmp(how, "the client's own error")) {
        gasnett_fatalerror("error %d of the client", 5);
    } else if (me == 0 && !strcmp(how, "the job's team")) {
        gex_TM_Destroy(tm, NULL, 0);
    } else if (me == 0) {
        gex_AM_RequestShort0(tm, all - 1, 200, 0);
    }
    for (;;) {
        gasnet_AMPoll();
    }
}
