/* Does a rank end as docs/gasnet.md says while other threads of its client live? The first argument
 * chooses the case:
 * - beside a poll, alone: a thread that has never called the conduit calls exit(), while another
 *   thread polls, and after all others have ended (both with GASNET_CATCH_EXIT=0);
 * - beside a test: exit() while another thread makes no calls but tests of an event
 *   (with GASNET_CATCH_EXIT=0);
 * - beside a get: exit() while another thread, which makes no other calls, gets from memory that is
 *   not mapped here;
 * - beside a put: exit(), with an exit handler that takes time, while another thread puts to mapped
 *   memory by inlined accesses, and so never enters the conduit;
 * - before a get: exit(), with an exit handler during which another thread makes its first call.
 * tests/run checks the exit code. Threads need PAR: programs of the other modes do nothing. */
#include "t.h"
#include <time.h>

#if defined(GASNET_PAR)
#include <pthread.h>

static _Atomic int ready; /* the other thread has begun */
static char memory[4096] __attribute__((aligned(4096)));

static pthread_t start(void *run(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument)) {
        abort();
    }
    return thread;
}
static void sleep_ms(long ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}
static void await(void) {
    while (!ready) {
        sleep_ms(1);
    }
}

static void *begin_there(void *stays) {
    begin(NULL, 0);
    barrier();
    ready = 1;
    while (stays && me == 0) {
        gasnet_AMPoll();
    }
    return NULL;
}
/* Rank 0 calls exit(); the others go on. `waits`: until rank 0 has ended the job. */
static int exit_alone(int waits) {
    if (me == 0) {
        exit(0);
    }
    sleep_ms(waits ? 30000 : 1000);
    fprintf(stderr, "rank %u has gone on\n", me);
    return 3;
}
/* The thread that calls exit() is one that the conduit has not seen. */
static int stranger(int stays) {
    pthread_t thread = start(begin_there, stays ? &client : NULL);
    await();
    if (!stays || me) {
        pthread_join(thread, NULL);
    }
    return exit_alone(stays);
}

static void *get(void *from) {
    for (uint64_t word;; ready = 1) {
        gex_RMA_GetBlocking(tm, &word, (me + 1) % all, from, sizeof word, 0);
    }
    return NULL;
}
static void *put(void *to) {
    for (uint64_t word = 0;; ready = 1) {
        gex_RMA_PutBlocking(tm, (me + 1) % all, to, &word, sizeof word, 0);
    }
    return NULL;
}
static void *test(void *event) {
    for (;; ready = 1) {
        gex_Event_Test(event);
    }
    return NULL;
}
static _Atomic int ends; /* this rank runs the exit handler */
static void *get_late(void *from) {
    while (!ends) {
        sleep_ms(1);
    }
    return get(from);
}
static void take_time(void) {
    ends = 1;
    sleep_ms(200);
}
static void begin_unmapped(void) {
    CHECK(gex_Client_Init(&client, &ep, &tm, "TEST", NULL, NULL, init_flags) == GASNET_OK);
    me = gex_TM_QueryRank(tm);
    all = gex_TM_QuerySize(tm);
    CHECK(gex_Segment_Create(&segment, client, memory, sizeof memory, GEX_MK_HOST, 0) == GASNET_OK);
    gex_EP_BindSegment(ep, segment, 0);
    CHECK(gex_EP_PublishBoundSegment(tm, &ep, 1, 0) == GASNET_OK);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "beside a poll") || !strcmp(how, "alone")) {
        return stranger(*how == 'b');
    } else if (!strcmp(how, "beside a test")) {
        begin(NULL, 0);
        if (me == 0) { /* no other rank enters this barrier */
            start(test, gex_Coll_BarrierNB(tm, 0));
            await();
        }
        return exit_alone(1);
    } else if (!strcmp(how, "beside a get")) {
        begin_unmapped();
        start(get, base_of((me + 1) % all));
        await();
        barrier();
        exit(5);
    } else if (!strcmp(how, "beside a put")) {
        atexit(take_time); /* before the conduit's own handler is registered, so it runs after that */
        begin(NULL, 0);
        start(put, base_of((me + 1) % all));
        await();
        barrier();
        exit(7);
    } else if (!strcmp(how, "before a get")) {
        atexit(take_time); /* as above */
        begin_unmapped();
        start(get_late, base_of((me + 1) % all));
        barrier();
        exit(9);
    }
    return 1;
}
#else
int main(void) { return 0; }
#endif
