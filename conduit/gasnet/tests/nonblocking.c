/* Do non-blocking accesses to other nodes go on behind their calls, and do their events and the
 * masks of gex_NBI_Test tell when they have ended? On a node each access is done when its call
 * returns. */
#include <pthread.h>
#include <stdbool.h>

#include "t.h"

#define COUNT 200
#define LARGE 20000
static unsigned next;
static char *there;
static bool far;
static uint64_t words[COUNT], back[COUNT];
static unsigned char out[LARGE], in[LARGE];

static void fill(uint64_t first) {
    for (unsigned i = 0; i < COUNT; i++) {
        words[i] = first + i + 1000 * me;
    }
    memset(back, 0, sizeof back);
}

static void explicit_events(void) {
    gex_Event_t events[COUNT];
    unsigned open = 0;
    fill(1);
    for (unsigned i = 0; i < COUNT; i++) {
        events[i] = gex_RMA_PutNB(tm, next, there + 8 * i, &words[i], 8, i % 2 ? GEX_EVENT_DEFER : GEX_EVENT_NOW, 0);
        open += events[i] != GEX_EVENT_INVALID;
    }
    CHECK(far ? open > 0 : open == 0);
    gex_Event_WaitAll(events, COUNT, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(events[i] == GEX_EVENT_INVALID);
        events[i] = gex_RMA_GetNB(tm, &back[i], next, there + 8 * i, 8, 0);
        CHECK(far || events[i] == GEX_EVENT_INVALID);
    }
    for (open = COUNT; open;) {
        gex_Event_WaitSome(events, COUNT, 0);
        open = 0;
        for (unsigned i = 0; i < COUNT; i++) {
            open += events[i] != GEX_EVENT_INVALID;
            CHECK(events[i] != GEX_EVENT_INVALID || back[i] == words[i]);
        }
    }
}

/* A put of bytes that the library does not copy, and its local completion: waited for alone,
 * left to the root, and in one array with the root, in both orders. */
static void local_completion(void) {
    for (unsigned way = 0; way < 4; way++) {
        gex_Event_t local = GEX_EVENT_NO_OP, events[2];
        memset(out, 10 * way + 1, sizeof out);
        gex_Event_t root = gex_RMA_PutNB(tm, next, there, out, LARGE, &local, 0);
        CHECK(local != GEX_EVENT_NO_OP && root != GEX_EVENT_NO_OP);
        CHECK(local == GEX_EVENT_INVALID || gex_Event_QueryLeaf(root, GEX_EC_LC) == local);
        switch (way) {
        case 0:
            gex_Event_Wait(local);
            memset(out, 0xee, sizeof out);
            gex_Event_Wait(root);
            memset(out, 1, sizeof out);
            break;
        case 1: gex_Event_Wait(root); break;
        default:
            events[way % 2] = root;
            events[1 - way % 2] = local;
            gex_Event_WaitAll(events, 2, 0);
        }
        gex_RMA_GetBlocking(tm, in, next, there, LARGE, 0);
        CHECK(!memcmp(in, out, LARGE));
    }
    memset(out, 0x55, sizeof out);
    gex_Event_t root = gex_RMA_PutNB(tm, next, there, out, LARGE, GEX_EVENT_NOW, 0);
    memset(out, 0xee, sizeof out);
    gex_Event_Wait(root);
    gex_RMA_GetBlocking(tm, in, next, there, LARGE, 0);
    CHECK(in[0] == 0x55 && in[LARGE - 1] == 0x55);
}

static void masks(void) {
    bool pending = false;
    fill(7);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(!gex_RMA_PutNBI(tm, next, there + 8 * i, &words[i], 8, i % 2 ? GEX_EVENT_GROUP : GEX_EVENT_DEFER, 0));
        CHECK(gex_NBI_Test(GEX_EC_GET | GEX_EC_RMW, 0) == GASNET_OK); /* only puts are under way */
        pending |= gex_NBI_Test(GEX_EC_PUT, 0) != GASNET_OK;
    }
    CHECK(far == pending);
    pending = false;
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(!gex_RMA_GetNBI(tm, &back[i], next, there + 8 * i, 8, 0));
        CHECK(gex_NBI_Test(GEX_EC_PUT | GEX_EC_RMW, 0) == GASNET_OK);
        pending |= gex_NBI_Test(GEX_EC_GET, 0) != GASNET_OK;
    }
    while (gasnet_try_syncnbi_gets() != GASNET_OK) {
    }
    gex_Event_t get = gex_RMA_GetNB(tm, &back[0], next, there, 8, 0), gets[] = {GEX_EVENT_INVALID, get};
    while (gasnet_try_syncnb_some_nopoll(gets, 2) != GASNET_OK || gasnet_try_syncnb_all_nopoll(gets, 2) != GASNET_OK) {
    }
    CHECK(gasnet_try_syncnb_nopoll(gets[1]) == GASNET_OK);
    CHECK(!memcmp(back, words, sizeof back));
    CHECK(far == pending);
    memset(out, 3, sizeof out);
    CHECK(!gex_RMA_PutNBI(tm, next, there, out, LARGE, GEX_EVENT_GROUP, 0));
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(out, 0xee, sizeof out);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    gex_RMA_GetBlocking(tm, in, next, there, LARGE, 0);
    CHECK(in[0] == 3 && in[LARGE - 1] == 3);
}

/* The event of a region stands for its accesses of all kinds; those before it do not belong to
 * it. */
static void regions(void) {
    gex_AD_t ad;
    uint64_t was = 0;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_SET | GEX_OP_GET, 0);
    gex_NBI_BeginAccessRegion(0);
    CHECK(gex_NBI_EndAccessRegion(0) == GEX_EVENT_INVALID);
    fill(40);
    gex_RMA_PutBlocking(tm, next, there, words, sizeof words, 0);
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_GetNBI(tm, back, next, there, sizeof back, 0);
    gex_RMA_PutNBI(tm, next, there + sizeof words, words, sizeof words, GEX_EVENT_GROUP, 0);
    gex_RMA_PutNBI(tm, next, there + 4 * LARGE, in, LARGE, GEX_EVENT_GROUP, 0);
    gex_AD_OpNBI_U64(ad, &was, next, there + 2 * sizeof words, GEX_OP_SET, 5, 0, 0);
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
    gex_Event_t event = gex_NBI_EndAccessRegion(0);
    CHECK(event == GEX_EVENT_INVALID || gex_Event_QueryLeaf(event, GEX_EC_GET) == gex_Event_QueryLeaf(event, GEX_EC_GET));
    gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    memset(words, 0, sizeof words);
    gex_Event_Wait(event);
    fill(40);
    memset(back, 0, sizeof back);
    gex_RMA_GetBlocking(tm, back, next, there + sizeof words, sizeof back, 0);
    CHECK(!memcmp(back, words, sizeof back));
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, next, there + 2 * sizeof words, GEX_OP_FADD, 2, 0, 0));
    EQUAL(was, 5);
    gex_AD_OpNBI_U64(ad, &was, next, there + 2 * sizeof words, GEX_OP_GET, 0, 0, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    EQUAL(was, 7);
    gex_AD_OpNBI_U64(ad, &was, next, there + 2 * sizeof words, GEX_OP_FADD, 1, 0, 0);
    CHECK(gex_NBI_Test(GEX_EC_GET | GEX_EC_PUT, 0) == GASNET_OK);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    EQUAL(was, 7);
    gex_AD_Destroy(ad);
}

/* Strided and indexed accesses, of which the last tells the peer. */
static void elements(void) {
    const ptrdiff_t apart[] = {64}, close[] = {8};
    const size_t count[] = {COUNT};
    void *from[COUNT], *to[COUNT];
    fill(90);
    for (unsigned i = 0; i < COUNT; i++) {
        from[i] = &back[i];
        to[i] = there + 64 * (size_t)i;
    }
    gex_Event_t event = gex_VIS_StridedPutNB(tm, next, there, apart, words, close, 8, count, 1, GEX_FLAG_ENABLE_LEAF_LC);
    CHECK(far ? event != GEX_EVENT_NO_OP : event == GEX_EVENT_INVALID);
    gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    memset(words, 0, sizeof words);
    gex_Event_Wait(event);
    fill(90);
    gex_VIS_IndexedGetNBI(tm, COUNT, from, 8, next, COUNT, to, 8, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(!memcmp(back, words, sizeof back));
    memset(back, 0, sizeof back);
    event = gex_VIS_StridedGetNB(tm, back, close, next, there, apart, 8, count, 1, 0);
    gex_Event_Wait(event);
    CHECK(!memcmp(back, words, sizeof back));
}

#ifndef GASNET_SEQ
/* A thread leaves NBI accesses behind, and another thread waits for its NB access. */
static gex_Event_t left;
static void *leave(void *nothing) {
    for (unsigned i = 0; i < COUNT; i++) {
        gex_RMA_PutNBI(tm, next, there + 8 * i, &words[i], 8, GEX_EVENT_DEFER, 0);
    }
    left = gex_RMA_GetNB(tm, in, next, there + LARGE, LARGE, 0);
    return nothing;
}

static void threads(void) {
    pthread_t thread;
    fill(300);
    memset(out, 0x77, sizeof out);
    gex_RMA_PutBlocking(tm, next, there + LARGE, out, LARGE, 0);
    CHECK(!pthread_create(&thread, NULL, leave, NULL));
    CHECK(!pthread_join(thread, NULL));
    gex_Event_Wait(left);
    CHECK(!memcmp(in, out, LARGE));
    for (unsigned tries = 0; memcmp(back, words, sizeof back); tries++) {
        CHECK(tries < 100000);
        gex_RMA_GetBlocking(tm, back, next, there, sizeof back, 0);
    }
}
#endif

/* Refused or accepted, an access with GEX_FLAG_IMMEDIATE happens at most once. */
static void immediate(void) {
    unsigned refused = 0;
    gex_AD_t ad;
    uint64_t was = 0;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_ADD | GEX_OP_SET, 0);
    gex_AD_OpNBI_U64(ad, &was, next, there, GEX_OP_SET, 0, 0, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    for (unsigned i = 0; i < 10 * COUNT; i++) {
        refused += gex_AD_OpNBI_U64(ad, &was, next, there, GEX_OP_ADD, 1, 0, GEX_FLAG_IMMEDIATE) != 0;
        gex_Event_t event = gex_RMA_GetNB(tm, in, next, there + 8, 8, GEX_FLAG_IMMEDIATE);
        if (event != GEX_EVENT_NO_OP) {
            gex_Event_Wait(event);
        }
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, next, there, GEX_OP_FADD, 0, 0, 0));
    EQUAL(was, 10 * COUNT - refused);
    gex_AD_Destroy(ad);
}

/* A wait polls, also if its access has ended while the client computed. */
static volatile bool called;
static void call(gex_Token_t token) {
    (void)token;
    called = true;
}

static void waits_poll(void) {
    gex_AM_RequestShort0(tm, next, 200, 0);
    for (unsigned rounds = 0; !called; rounds++) {
        gex_Event_t event = gex_RMA_PutNB(tm, next, there, words, 8, GEX_EVENT_DEFER, 0);
        CHECK(rounds < 400);
        usleep(2000);
        if (rounds % 2) {
            gex_Event_Wait(event);
        } else {
            gex_Event_WaitAll(&event, 1, 0);
        }
    }
}

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)call, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL}};
    gex_Rank_t near;
    begin(table, 1);
    gex_System_QueryNbrhdInfo(NULL, &near, NULL);
    next = near == all ? (me + 1) % all : (me + near) % all;
    far = near != all;
    there = base_of(next);
    explicit_events();
    local_completion();
    masks();
    regions();
    elements();
#ifndef GASNET_SEQ
    threads();
#endif
    immediate();
    barrier();
    waits_poll();
    end();
}
