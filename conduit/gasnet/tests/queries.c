/* Does each query return what the object was made with, does each object keep its client's pointer,
 * and does each limit of messages and of the system hold? Do the accesses that no other test uses
 * do what their names say? */
#include "t.h"

#include <sched.h>

static volatile int completed, arrived;
static char *there;

static void complete(gex_Token_t token, void *data, size_t size) {
    (void)token;
    CHECK(size == 5 && !memcmp(data, "whole", 5) && !memcmp(base_of(me) + 64, "0123456789", 10));
    completed++;
}
static void reply_long(gex_Token_t token, void *data, size_t size) {
    (void)token;
    CHECK(size == 10 && data == base_of(me) + 256 && !memcmp(data, "0123456789", 10));
    arrived++;
}
static void ask(gex_Token_t token) {
    gex_Token_Info_t info;
    CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
    size_t most = gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 0);
    CHECK(most >= gex_AM_LUBReplyLong());
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyLong(token, NULL, 10, 10, NULL, NULL, 0, 0);
    memcpy(gex_AM_SrcDescAddr(sd), "0123456789", 10);
    gex_AM_CommitReplyLong0(sd, 202, 10, base_of(info.gex_srcrank) + 256);
}

#define KEEPS(type, object)                                     \
    do {                                                        \
        CHECK(gex_##type##_QueryCData(object) == NULL);         \
        gex_##type##_SetCData(object, &there);                  \
        CHECK(gex_##type##_QueryCData(object) == (void *)&there); \
    } while (0)

static void objects(void) {
    gex_AD_t ad;
    gex_MK_t kind;
    CHECK(!strcmp(gex_Client_QueryName(client), "TEST") && gex_Client_QueryFlags(client) == init_flags);
    CHECK(gex_EP_QueryClient(ep) == client && gex_EP_QueryFlags(ep) == 0 && gex_EP_QueryIndex(ep) == 0);
    gex_EP_Capabilities_t can = gex_EP_QueryCapabilities(ep);
    CHECK(can & GEX_EP_CAPABILITY_AM && can & GEX_EP_CAPABILITY_RMA);
    CHECK(gex_Segment_QueryClient(segment) == client && gex_Segment_QueryFlags(segment) == 0);
    CHECK(gex_Segment_QuerySize(segment) == SEGMENT && gex_Segment_QueryAddr(segment) == base_of(me));
    EQUAL(gex_TM_QueryFlags(tm), 0);
    gex_EP_Location_t location = gex_TM_TranslateRankToEP(tm, all - 1, 0);
    CHECK(location.gex_rank == all - 1 && location.gex_ep_index == 0);
    KEEPS(Client, client);
    KEEPS(EP, ep);
    KEEPS(Segment, segment);
    KEEPS(TM, tm);
    gex_AD_Create(&ad, tm, GEX_DT_I64, GEX_OP_ADD, 0);
    CHECK(gex_AD_QueryFlags(ad) == 0 && gex_AD_QueryTM(ad) == tm && gex_AD_QueryDT(ad) == GEX_DT_I64);
    CHECK(gex_AD_QueryOps(ad) == GEX_OP_ADD);
    KEEPS(AD, ad);
    gex_AD_Destroy(ad);
    int verbose = gex_System_GetVerboseErrors();
    gex_System_SetVerboseErrors(0);
    EQUAL(gex_System_GetVerboseErrors(), 0);
    EQUAL(gex_MK_Create(&kind, client, NULL, 0), GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(verbose);
}

static void limits(void) {
    unsigned threads = 77;
    const gex_ProgressThreadInfo_t *info;
    CHECK(gex_System_QueryJobRank() == me && gex_System_QueryJobSize() == all);
    CHECK(gex_System_QueryMaxThreads() >= 1 && gex_System_QueryHiddenAMConcurrencyLevel() == 0);
    EQUAL(gex_System_QueryProgressThreads(client, &threads, &info, 0), GASNET_OK);
    EQUAL(threads, 0);
    for (unsigned r = 0; r < all; r++) {
        CHECK(gex_AM_MaxRequestMedium(tm, r, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBRequestMedium());
        CHECK(gex_AM_MaxReplyMedium(tm, r, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBReplyMedium());
        CHECK(gex_AM_MaxRequestLong(tm, r, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBRequestLong());
        CHECK(gex_AM_MaxReplyLong(tm, r, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBReplyLong());
    }
}

static void events(unsigned next) {
    gex_Event_t events[3] = {gex_Coll_BarrierNB(tm, 0), GEX_EVENT_INVALID, gex_Coll_BarrierNB(tm, 0)};
    gex_Event_WaitSome(events, 3, 0);
    while (gex_Event_TestSome(events, 3, 0) == GASNET_ERR_NOT_READY || gex_Event_TestAll(events, 3, 0)) {
        gasnet_AMPoll();
    }
    CHECK(events[0] == GEX_EVENT_INVALID && events[2] == GEX_EVENT_INVALID);
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_PutNBIVal(tm, next, there, 0x1234, 2, 0);
    gex_Event_t region = gex_NBI_EndAccessRegion(0);
    gex_Event_Wait(gex_Event_QueryLeaf(region, GEX_EC_LC));
    gex_Event_Wait(region);
    EQUAL(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    gex_Event_Wait(gex_RMA_PutNBVal(tm, next, there + 2, 0x56, 1, 0));
    EQUAL(gex_RMA_GetBlockingVal(tm, next, there, 3, 0), 0x561234);
    gex_HSL_t lock;
    gex_HSL_Init(&lock);
    EQUAL(gex_HSL_Trylock(&lock), GASNET_OK);
    gex_HSL_Unlock(&lock);
    gex_HSL_Destroy(&lock);
    gex_Coll_BarrierBlocking(tm, 0);
}

/* The NB and NBI forms put 10 bytes in two pieces and get them back; a handler runs at the peer
 * once the bytes of a put are there. */
static void with_gaps(unsigned next) {
    char from[] = "0123456789", to[11] = "", *far = there + 64;
    gex_Memvec_t near_v[] = {{from, 10}}, back_v[] = {{to, 10}}, far_v[] = {{there + 64, 4}, {there + 68, 6}};
    void *near_i[] = {from}, *back_i[] = {to}, *far_i[] = {there + 64, there + 69};
    ptrdiff_t strides[] = {5};
    size_t count[] = {2};
    for (int form = 0; form < 6; form++) {
        gex_VIS_SetPeerCompletionHandler(201, "whole", 5, 0);
        switch (form) {
            case 0: gex_Event_Wait(gex_VIS_VectorPutNB(tm, next, 2, far_v, 1, near_v, 0)); break;
            case 1: gex_VIS_VectorPutNBI(tm, next, 2, far_v, 1, near_v, 0); break;
            case 2: gex_Event_Wait(gex_VIS_IndexedPutNB(tm, next, 2, far_i, 5, 1, near_i, 10, 0)); break;
            case 3: gex_VIS_IndexedPutNBI(tm, next, 2, far_i, 5, 1, near_i, 10, 0); break;
            case 4: gex_Event_Wait(gex_VIS_StridedPutNB(tm, next, far, strides, from, strides, 5, count, 1, 0)); break;
            default: gex_VIS_StridedPutNBI(tm, next, far, strides, from, strides, 5, count, 1, 0);
        }
        gex_NBI_Wait(GEX_EC_PUT, 0);
        GASNET_BLOCKUNTIL(completed == form + 1);
        memset(to, 0, sizeof to);
        switch (form) {
            case 0: gex_Event_Wait(gex_VIS_VectorGetNB(tm, 1, back_v, next, 2, far_v, 0)); break;
            case 1: gex_VIS_VectorGetNBI(tm, 1, back_v, next, 2, far_v, 0); break;
            case 2: gex_Event_Wait(gex_VIS_IndexedGetNB(tm, 1, back_i, 10, next, 2, far_i, 5, 0)); break;
            case 3: gex_VIS_IndexedGetNBI(tm, 1, back_i, 10, next, 2, far_i, 5, 0); break;
            case 4: gex_Event_Wait(gex_VIS_StridedGetNB(tm, to, strides, next, far, strides, 5, count, 1, 0)); break;
            default: gex_VIS_StridedGetNBI(tm, to, strides, next, far, strides, 5, count, 1, 0);
        }
        gex_NBI_Wait(GEX_EC_GET, 0);
        CHECK(!memcmp(to, from, 10));
        barrier();
        gasnet_memset(next, there + 64, 0, 10);
        barrier();
    }
}

/* Whether gasnett_cpu_count counts the machine's cores, though this process may use only one. */
static void cores(void) {
    static cpu_set_t allowed[64]; /* 65,536 cores */
    int count = gasnett_cpu_count(), first = 0;
    CHECK(!sched_getaffinity(0, sizeof allowed, allowed));
    CHECK(count >= CPU_COUNT_S(sizeof allowed, allowed));
    while (!CPU_ISSET_S((size_t)first, sizeof allowed, allowed)) {
        first++;
    }
    EQUAL(gasnett_set_affinity(first), 0);
    memset(allowed, 0, sizeof allowed);
    CHECK(!sched_getaffinity(0, sizeof allowed, allowed));
    CHECK(CPU_COUNT_S(sizeof allowed, allowed) == 1 && CPU_ISSET_S((size_t)first, sizeof allowed, allowed));
    EQUAL(gasnett_cpu_count(), count);
}

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)complete, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
                              {202, (gex_AM_Fn_t)reply_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    init_flags |= GEX_FLAG_DEFER_THREADS; /* without it a client must not ask for progress threads */
    begin(table, 3);
    unsigned next = (me + 1) % all;
    there = base_of(next);
    objects();
    limits();
    events(next);
    with_gaps(next);
    gex_AM_RequestShort0(tm, next, 200, 0);
    GASNET_BLOCKUNTIL(arrived == 1);
    cores();
    end();
}
