/* Does a message that is prepared and then cancelled leave no trace? Is a message that a commit
 * with GEX_FLAG_IMMEDIATE refused still prepared, with its bytes, so that it can be sent later?
 * Does a thread that has prepared a message leave no memory behind? */
#include "t.h"

#define ROOM ((uintptr_t)4096) /* bytes of the segment for one message in each direction */
#define FLOOD 3000
static volatile unsigned requests, replies;
static unsigned char bytes[ROOM];

static void fill(unsigned char *data, size_t size, gex_AM_Arg_t seed) {
    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)(i * 7 + (size_t)seed);
    }
}
static void check(const unsigned char *data, size_t size, gex_AM_Arg_t seed) {
    for (size_t i = 0; i < size; i++) {
        EQUAL(data[i], (unsigned char)(i * 7 + (size_t)seed));
    }
}
static void reply(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t seed) {
    (void)token;
    check(data, size, seed);
    replies++;
}

/* Prepares a reply of each kind and cancels it, and then sends one of the kind of the request. */
static void request(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t seed) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_ALL);
    check(data, size, seed);
    requests++;
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, NULL, size, size, NULL, 0, 1);
    memset(gex_AM_SrcDescAddr(sd), 0, size);
    EQUAL(gex_AM_CancelReplyMedium(sd, 0), 0);
    sd = gex_AM_PrepareReplyLong(token, NULL, size, size, NULL, NULL, 0, 1);
    memset(gex_AM_SrcDescAddr(sd), 0, size);
    EQUAL(gex_AM_CancelReplyLong(sd, 0), 0);
    if (info.gex_is_long) {
        sd = gex_AM_PrepareReplyLong(token, data, size, size, NULL, GEX_EVENT_NOW, 0, 1);
        EQUAL(gex_AM_CommitReplyLong_v2(sd, 201, size, base_of(info.gex_srcrank) + ROOM, 0, seed), 0);
    } else {
        sd = gex_AM_PrepareReplyMedium(token, NULL, size, size, NULL, 0, 1);
        memcpy(gex_AM_SrcDescAddr(sd), data, size);
        EQUAL(gex_AM_CommitReplyMedium_v2(sd, 201, size, GEX_FLAG_IMMEDIATE, seed), 0);
    }
}
static void flood(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t seed) {
    (void)token;
    check(data, size, seed);
    requests++;
}

/* A rank asks its neighbour, so that no two ranks write to the same place. */
static void cancelled(void) {
    unsigned to = (me + 1) % all;
    for (int i = 0; i < 20; i++) {
        size_t size = i % 2 ? 24 : ROOM;
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(tm, to, bytes, 0, size, NULL, GEX_EVENT_NOW, 0, 3);
        EQUAL(gex_AM_CancelRequestLong(sd, 0), 0);
        sd = gex_AM_PrepareRequestMedium(tm, to, NULL, size, size, NULL, 0, 1);
        memset(gex_AM_SrcDescAddr(sd), 0, size);
        EQUAL(gex_AM_CancelRequestMedium(sd, 0), 0);
        sd = gex_AM_PrepareRequestMedium(tm, to, NULL, size, size, NULL, 0, 1);
        fill(gex_AM_SrcDescAddr(sd), size, i);
        EQUAL(gex_AM_CommitRequestMedium_v2(sd, 200, size, 0, i), 0);
        GASNET_BLOCKUNTIL(replies == 2 * (unsigned)i + 1);
        fill(bytes, size, i);
        sd = gex_AM_PrepareRequestLong(tm, to, bytes, size, size, NULL, GEX_EVENT_NOW, 0, 1);
        EQUAL(gex_AM_CommitRequestLong1_v2(sd, 200, size, base_of(to), 0, i), 0);
        GASNET_BLOCKUNTIL(replies == 2 * (unsigned)i + 2);
    }
    barrier();
    EQUAL(requests, 40);
    EQUAL(replies, 40);
}

static int commit(gex_AM_SrcDesc_t sd, size_t size, gex_Flags_t flags, gex_AM_Arg_t seed) {
    void *at = gex_AM_SrcDescAddr(sd);
    int refused = gex_AM_CommitRequestMedium_v2(sd, 202, size, flags, seed);
    if (refused) {
        CHECK(gex_AM_SrcDescAddr(sd) == at);
        EQUAL(gex_AM_SrcDescSize(sd), size);
        check(at, size, seed);
    }
    return refused;
}

/* Rank 0 sends to rank 1, which does not poll until rank 0 has been refused. */
static void send_until_refused(unsigned *sent) {
    for (;; ++*sent) {
        size_t size = *sent % 2 ? 24 : 700;
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, 1, NULL, size, size, NULL, 0, 1);
        fill(gex_AM_SrcDescAddr(sd), size, (gex_AM_Arg_t)*sent);
        if (commit(sd, size, GEX_FLAG_IMMEDIATE, (gex_AM_Arg_t)*sent)) {
            if (!commit(sd, size, GEX_FLAG_IMMEDIATE, (gex_AM_Arg_t)*sent)) {
                continue; /* over a wire, room may have come in between */
            }
            EQUAL(gex_AM_CancelRequestMedium(sd, 0), 0);
            return;
        }
    }
}

static void refused(void) {
    volatile uint32_t *begun = (volatile uint32_t *)(void *)base_of(me), *total = begun + 1;
    unsigned sent = 0;
    if (me == 0) {
        send_until_refused(&sent);
        gex_RMA_PutBlockingVal(tm, 1, base_of(1), 1, 4, 0);
        for (int i = 0; i < FLOOD; i++, sent++) {
            size_t size = i % 3 ? 24 : 700;
            gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, 1, NULL, 1, size, NULL, 0, 1);
            fill(gex_AM_SrcDescAddr(sd), size, i);
            for (int tries = 0; commit(sd, size, tries < 100 ? GEX_FLAG_IMMEDIATE : 0, i); tries++) {
            }
        }
        gex_RMA_PutBlockingVal(tm, 1, base_of(1) + 4, sent, 4, 0);
    } else if (me == 1) {
        while (!*begun) {
            usleep(100); /* a poll would free slots */
        }
        usleep(10000);
        GASNET_BLOCKUNTIL(*total && requests == *total);
    }
    barrier();
    EQUAL(requests, me == 1 ? *total : 0);
}

#if defined(GASNET_PAR)
/* Prepares in a buffer of the conduit, and cancels or sends. */
static void *prepare_once(void *sends) {
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, me, NULL, 24, 24, NULL, 0, 1);
    fill(gex_AM_SrcDescAddr(sd), 24, 1);
    if (sends) {
        gex_AM_CommitRequestMedium_v2(sd, 202, 24, 0, 1);
    } else {
        gex_AM_CancelRequestMedium(sd, 0);
    }
    return NULL;
}

/* Starts these threads, one after the other. Returns the bytes of this process's data then, heaps
 * and mapped blocks of malloc included. */
static size_t memory_after(unsigned threads) {
    size_t pages = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, prepare_once, i % 2 ? &thread : NULL));
        CHECK(!pthread_join(thread, NULL));
    }
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*u %*u %*u %*u %*u %zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
#ifdef __SANITIZE_THREAD__
#define MEASURES 0 /* ThreadSanitizer's own memory grows with the number of threads */
#else
#define MEASURES 1
#endif
static void threads_end(void) {
    size_t before = memory_after(10), after = memory_after(400);
    CHECK(!MEASURES || after < before + 100 * gex_AM_LUBRequestMedium());
}
#else
static void threads_end(void) {}
#endif

int main(void) {
    gex_AM_Entry_t table[] = {
        {200, (gex_AM_Fn_t)request, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
        {202, (gex_AM_Fn_t)flood, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, NULL}};
    begin(table, 3);
    barrier();
    cancelled();
    requests = 0;
    memset(base_of(me), 0, 8);
    barrier();
    if (all > 1) {
        refused();
    }
    threads_end();
    end();
}
