/* May several threads send, poll and wait at once in PAR, and may one end the job while others
 * poll? In the other modes one thread does all of that. */
#include "t.h"

#if defined(GASNET_PAR)
#define THREADS 4
#else
#define THREADS 1
#endif
#define COUNT 3000
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static volatile long sum;
static gasnett_atomic_t replies = gasnett_atomic_init(0);

static void reply(gex_Token_t token, gex_AM_Arg_t value) {
    (void)token, (void)value;
    gasnett_atomic_increment(&replies, 0);
}
static void request(gex_Token_t token, gex_AM_Arg_t value) {
    gex_HSL_Lock(&lock);
    sum += value;
    gex_HSL_Unlock(&lock);
    gex_AM_ReplyShort1(token, 201, 0, value);
}

static void *work(void *nothing) {
    for (int i = 0; i < COUNT; i++) {
        gex_AM_RequestShort1(tm, (me + (unsigned)i) % all, 200, 0, 1);
        gex_HSL_Lock(&lock);
        sum += 1;
        gex_HSL_Unlock(&lock);
    }
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&replies, 0) == COUNT * THREADS);
    return nothing;
}

#if defined(GASNET_PAR)
static void *poll_for_ever(void *nothing) {
    GASNET_BLOCKUNTIL(0);
    return nothing;
}
#endif

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
                              {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL}};
    begin(table, 2);
#if defined(GASNET_PAR)
    pthread_t threads[THREADS], poller;
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_create(&threads[i], NULL, work, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_join(threads[i], NULL));
    }
#else
    work(NULL);
#endif
    barrier();
    EQUAL(sum, 2L * COUNT * THREADS);
#if defined(GASNET_PAR)
    CHECK(!pthread_create(&poller, NULL, poll_for_ever, NULL));
#endif
    end();
}
