/* Shared by the tests: CHECK, which prints its place; initialisation; handlers that count. */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "%s:%d: rank %u: %s\n", __FILE__, __LINE__, (unsigned)gasnet_mynode(),        \
                    #condition);                                                                          \
            gasnet_exit(1);                                                                               \
        }                                                                                                 \
    } while (0)
#define EQUAL(a, b)                                                                                       \
    do {                                                                                                  \
        long long left = (long long)(a), right = (long long)(b);                                          \
        if (left != right) {                                                                              \
            fprintf(stderr, "%s:%d: rank %u: %s is %lld, not %lld\n", __FILE__, __LINE__,                 \
                    (unsigned)gasnet_mynode(), #a, left, right);                                          \
            gasnet_exit(1);                                                                               \
        }                                                                                                 \
    } while (0)

#define SEGMENT ((uintptr_t)1 << 20)
static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static unsigned me, all;
static gex_Flags_t init_flags = GEX_FLAG_USES_GASNET1;

static inline void begin(gex_AM_Entry_t *table, size_t entries) {
    CHECK(gex_Client_Init(&client, &ep, &tm, "TEST", NULL, NULL, init_flags) == GASNET_OK);
    CHECK(gex_EP_RegisterHandlers(ep, table, entries) == GASNET_OK);
    /* Registered before the attach: another rank may return from it first, and send. */
    me = gex_TM_QueryRank(tm);
    all = gex_TM_QuerySize(tm);
    CHECK(gex_Segment_Attach(&segment, tm, SEGMENT) == GASNET_OK);
}
static inline char *base_of(unsigned rank) {
    void *address = NULL; /* handlers call this function, so it does not wait for the event */
    CHECK(gex_EP_QueryBoundSegmentNB(tm, rank, &address, NULL, NULL, GEX_FLAG_IMMEDIATE) == GEX_EVENT_INVALID);
    return address;
}
static inline void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); }
static inline void end(void) {
    barrier();
    gasnet_exit(0);
}
