/* Does a named barrier report a mismatch at every rank, and return the name that all ranks gave? */
#include "t.h"

static int round_of(int id, int flags) {
    gasnet_barrier_notify(id, flags);
    if (id % 2) {
        return gasnet_barrier_wait(id, flags);
    }
    int answer;
    while ((answer = gasnet_barrier_try(id, flags)) == GASNET_ERR_NOT_READY) {
    }
    return answer;
}

int main(void) {
    int id;
    gex_Rank_t near;
    begin(NULL, 0);
    gex_System_QueryNbrhdInfo(NULL, &near, NULL);
    int rounds = near == all ? 2000 : 50;
    for (int i = 0; i < rounds; i++) {
        EQUAL(round_of(i, 0), GASNET_OK);
        EQUAL(gasnet_barrier_result(&id), 0);
        EQUAL(id, i);
        EQUAL(round_of(0, GASNET_BARRIERFLAG_ANONYMOUS), GASNET_OK);
        CHECK(gasnet_barrier_result(&id) != 0);
    }
    for (unsigned odd = 0; odd < all; odd++) {
        /* One rank gives another name; one is anonymous among named ones; one asks for a
         * mismatch. */
        EQUAL(round_of(me == odd ? -7 : 7, 0), all > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK);
        EQUAL(round_of(me == odd ? 0 : 9, me == odd ? GASNET_BARRIERFLAG_ANONYMOUS : 0), GASNET_OK);
        EQUAL(round_of(3, me == odd ? GASNET_BARRIERFLAG_MISMATCH : 0), GASNET_ERR_BARRIER_MISMATCH);
        gasnet_barrier_notify(5, 0);
        EQUAL(gasnet_barrier_wait(me == odd ? 6 : 5, 0), me == odd ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK);
    }
    end();
}
