/* Does a handler-safe lock keep the client's function of a reduction and the client apart? The
 * function may run on a thread that the client did not create, in SEQ, too. */
#include "t.h"

static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static volatile int inside, elsewhere;
static pthread_t client_thread;

static void add(const void *left, void *right, size_t count, const void *data) {
    (void)data;
    gex_HSL_Lock(&lock);
    elsewhere += !pthread_equal(pthread_self(), client_thread);
    inside = 1;
    usleep(20000);
    for (size_t i = 0; i < count; i++) {
        ((uint64_t *)right)[i] += ((const uint64_t *)left)[i];
    }
    inside = 0;
    gex_HSL_Unlock(&lock);
}

int main(void) {
    begin(NULL, 0);
    client_thread = pthread_self();
    for (int round = 0; round < 4; round++) {
        uint64_t mine = me + 1, sum = 0;
        barrier();
        /* The ranks begin one after the other, so that data comes to ranks that are not polling. */
        usleep(me * 10000);
        gex_Event_t event = gex_Coll_ReduceToAllNB(tm, &sum, &mine, GEX_DT_U64, 8, 1, GEX_OP_USER, add, NULL, 0);
        for (int i = 0; i < 500; i++) {
            gex_HSL_Lock(&lock);
            CHECK(!inside);
            gex_HSL_Unlock(&lock);
            usleep(100);
        }
        gex_Event_Wait(event);
        EQUAL(sum, all * (all + 1) / 2);
    }
    CHECK(gex_HSL_Trylock(&lock) == GASNET_OK);
    CHECK(gex_HSL_Trylock(&lock) == GASNET_ERR_NOT_READY);
    gex_HSL_Unlock(&lock);
    if (!elsewhere) {
        printf("user_function: rank %u: not tested: no function ran on a thread of the library\n", (unsigned)me);
    }
    end();
}
