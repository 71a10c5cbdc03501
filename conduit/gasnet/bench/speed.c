/* Measures the cost of calls of GASNet-EX and GASNet-1. It builds against this conduit and against
 * any of GASNet's own, so that runs on one machine can be compared. Rank 0 prints for each call the
 * median and the quartiles of 9 repeats, in nanoseconds of elapsed time. The puts, gets and
 * messages go between ranks 0 and 1; collectives include all ranks. The first argument divides the
 * numbers of calls: a wire takes too long for as many calls as shared memory. Further arguments
 * name the rows to measure, in this order; without any, all are measured. */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <string.h>

#include "repeats.h"

#define GO(call)                                                                   \
    do {                                                                           \
        int code = (call);                                                         \
        if (code != GASNET_OK) {                                                   \
            fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorName(code));            \
            gasnet_exit(1);                                                        \
        }                                                                          \
    } while (0)

static gex_TM_t tm;
static unsigned me, all, peer;
static char *there;
static volatile unsigned long requests, replies;
static char bytes[1 << 20], result[1 << 20];

static void reply(gex_Token_t token) {
    (void)token;
    replies++;
}
static void asked(gex_Token_t token) {
    requests++;
    gex_AM_ReplyShort0(token, 201, 0);
}
static void asked_medium(gex_Token_t token, void *data, size_t size) {
    requests++;
    gex_AM_ReplyMedium0(token, 204, data, size, GEX_EVENT_NOW, 0);
}
static void told(gex_Token_t token) {
    (void)token;
    requests++;
}
static void reply_medium(gex_Token_t token, void *data, size_t size) {
    (void)token, (void)data, (void)size;
    replies++;
}

static void barrier(void) { gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); }
/* The second barrier may handle the first messages of a rank that has passed it, so the ranks set
 * their counts to 0 before it. */
static void begin(void) {
    barrier();
    requests = replies = 0;
    barrier();
}

/* Each function makes `n` calls of one kind. */
static void round_trip(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        replies = 0;
        gex_AM_RequestShort0(tm, peer, 200, 0);
        GASNET_BLOCKUNTIL(replies == 1);
    }
}
static void one_way(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gex_AM_RequestShort0(tm, peer, 203, 0);
    }
    if (me == 1) {
        GASNET_BLOCKUNTIL(requests >= (unsigned long)n);
    }
}
static void flood_1k(long n) {
    if (me > 1) {
        return;
    }
    for (long i = 0; i < n; i++) {
        gex_AM_RequestMedium0(tm, peer, 202, bytes, 1024, GEX_EVENT_NOW, 0);
    }
    GASNET_BLOCKUNTIL(replies >= (unsigned long)n && requests >= (unsigned long)n);
}
static void put_8(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gex_RMA_PutBlocking(tm, peer, there + (i & 1023) * 8, bytes + (i & 1023) * 8, 8, 0);
    }
}
static void get_8(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gex_RMA_GetBlocking(tm, bytes + (i & 1023) * 8, peer, there + (i & 1023) * 8, 8, 0);
    }
}
/* 64 accesses are under way together. */
static void put_8_nbi(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gex_RMA_PutNBI(tm, peer, there + (i & 1023) * 8, bytes + (i & 1023) * 8, 8, GEX_EVENT_DEFER, 0);
        if ((i & 63) == 63 || i == n - 1) {
            gex_NBI_Wait(GEX_EC_PUT, 0);
        }
    }
}
static void get_8_nbi(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gex_RMA_GetNBI(tm, bytes + (i & 1023) * 8, peer, there + (i & 1023) * 8, 8, 0);
        if ((i & 63) == 63 || i == n - 1) {
            gex_NBI_Wait(GEX_EC_GET, 0);
        }
    }
}
static void poll_empty(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        gasnet_AMPoll();
    }
}
static void barrier_nb(long n) {
    for (long i = 0; i < n; i++) {
        barrier();
    }
}
static void barrier_named(long n) {
    for (long i = 0; i < n; i++) {
        gasnet_barrier_notify((int)i, 0);
        GO(gasnet_barrier_wait((int)i, 0));
    }
}
static void allreduce_1m(long n) {
    for (long i = 0; i < n; i++) {
        gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, result, bytes, GEX_DT_DBL, 8, sizeof bytes / 8, GEX_OP_ADD, NULL,
                                              NULL, 0));
    }
}

#if defined(GASNET_PAR)
#include <pthread.h>

#define THREADS 8
/* asked() and reply() for threads that run handlers at the same time: they count atomically. */
static void asked_by_any(gex_Token_t token) {
    __atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
    gex_AM_ReplyShort0(token, 206, 0);
}
static void reply_to_any(gex_Token_t token) {
    (void)token;
    __atomic_fetch_add(&replies, 1, __ATOMIC_RELAXED);
}
static void *send_and_poll(void *calls) {
    for (long i = 0; i < *(long *)calls; i++) {
        gex_AM_RequestShort0(tm, peer, 205, 0);
        gasnet_AMPoll();
    }
    return NULL;
}
/* `n` requests, each of which is answered, by `count` threads of rank 0. */
static void by_threads(long n, int count) {
    pthread_t threads[THREADS];
    long each = n / count;
    unsigned long total = (unsigned long)each * (unsigned long)count;
    for (int i = 0; i < count && me == 0; i++) {
        if (pthread_create(&threads[i], NULL, send_and_poll, &each)) {
            gasnet_exit(1);
        }
    }
    for (int i = 0; i < count && me == 0; i++) {
        pthread_join(threads[i], NULL);
    }
    if (me <= 1) {
        GASNET_BLOCKUNTIL(__atomic_load_n(me == 0 ? &replies : &requests, __ATOMIC_RELAXED) >= total);
    }
}
static void thread_1(long n) { by_threads(n, 1); }
static void threads_8(long n) { by_threads(n, THREADS); }
#endif

struct row {
    const char *name;
    void (*run)(long);
    long calls;
};
static const struct row rows[] = {
    {"am_round_trip", round_trip, 20000}, {"am_one_way", one_way, 100000},
    {"am_flood_1k_answered", flood_1k, 20000}, {"put_8", put_8, 2000000},
    {"get_8", get_8, 2000000}, {"put_8_nbi", put_8_nbi, 2000000},
    {"get_8_nbi", get_8_nbi, 2000000}, {"poll_empty", poll_empty, 1000000},
    {"barrier_nb", barrier_nb, 20000}, {"barrier_named", barrier_named, 20000},
    {"allreduce_1m", allreduce_1m, 4},
#if defined(GASNET_PAR)
    {"am_by_1_thread", thread_1, 40000}, {"am_by_8_threads", threads_8, 40000},
#endif
};

static void measure(const struct row *row, long divisor) {
    double ns[REPEATS];
    long calls = row->calls / (divisor > 0 ? divisor : 1) + 1;
    begin();
    row->run(calls / 10 + 1);
    for (int i = 0; i < REPEATS; i++) {
        begin();
        double start = now();
        row->run(calls);
        ns[i] = (now() - start) / (double)calls;
        barrier();
    }
    if (me == 0) {
        printf("%s conduit=%s ranks=%u calls=%ld", row->name, GASNET_CONDUIT_NAME_STR, all, calls);
        print_repeats(ns);
    }
}

/* Measures the rows of a name, or all if it is NULL. Returns how many there are. */
static int measure_named(const char *name, long divisor) {
    int count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!name || !strcmp(name, rows[i].name)) {
            measure(&rows[i], divisor);
            count++;
        }
    }
    return count;
}

int main(int argc, char **argv) {
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    void *address = NULL;
    gex_AM_Entry_t table[] = {
        {200, (gex_AM_Fn_t)asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
        {202, (gex_AM_Fn_t)asked_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {203, (gex_AM_Fn_t)told, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
#if defined(GASNET_PAR)
        {205, (gex_AM_Fn_t)asked_by_any, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {206, (gex_AM_Fn_t)reply_to_any, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
#endif
        {204, (gex_AM_Fn_t)reply_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    GO(gex_Client_Init(&client, &ep, &tm, "SPEED", &argc, &argv, GEX_FLAG_USES_GASNET1));
    GO(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table));
    GO(gex_Segment_Attach(&segment, tm, 1 << 20));
    me = gex_TM_QueryRank(tm);
    all = gex_TM_QuerySize(tm);
    peer = me ^ 1;
    if (all < 2) {
        gasnet_exit(1);
    }
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer < all ? peer : 0, &address, NULL, NULL, 0));
    there = address;
    long divisor = argc > 1 ? atol(argv[1]) : 1;
    if (argc <= 2) {
        measure_named(NULL, divisor);
    }
    for (int i = 2; i < argc; i++) {
        if (!measure_named(argv[i], divisor)) {
            fprintf(stderr, "%s is no row\n", argv[i]);
            gasnet_exit(1);
        }
    }
    barrier();
    gasnet_exit(0);
}
