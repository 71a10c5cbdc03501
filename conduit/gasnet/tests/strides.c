/* Do strided, indexed and vector accesses touch the bytes that a plain loop touches, with strides
 * of both signs? */
#include "t.h"

static unsigned char local[8192], copy[65536], expected[65536];
static char *there;
static unsigned next;

static void strided(ptrdiff_t s0, ptrdiff_t s1, ptrdiff_t s2) {
    const ptrdiff_t far[] = {s0, s1, s2}, near[] = {5, 60, 700};
    const size_t count[] = {7, 4, 5};
    memset(expected, 0, sizeof expected);
    gasnet_memset(next, there, 0, sizeof expected);
    for (int z = 0; z < 5; z++) {
        for (int y = 0; y < 4; y++) {
            for (int x = 0; x < 7; x++) {
                memcpy(expected + 30000 + x * s0 + y * s1 + z * s2, local + x * 5 + y * 60 + z * 700, 5);
            }
        }
    }
    gex_VIS_StridedPutBlocking(tm, next, there + 30000, far, local, near, 5, count, 3, 0);
    gex_RMA_GetBlocking(tm, copy, next, there, sizeof copy, 0);
    CHECK(!memcmp(copy, expected, sizeof copy));
    memset(copy, 0, sizeof copy);
    gex_Event_Wait(gex_VIS_StridedGetNB(tm, copy, near, next, there + 30000, far, 5, count, 3, 0));
    for (int i = 0; i < 7 * 4 * 5; i++) {
        int at = i % 7 * 5 + i / 7 % 4 * 60 + i / 28 * 700;
        CHECK(!memcmp(copy + at, local + at, 5));
    }
}

static void lists(void) {
    gex_Memvec_t to[40], from[13];
    void *to_list[30], *from_list[10];
    unsigned at = 0;
    memset(expected, 0, sizeof expected);
    gasnet_memset(next, there, 0, sizeof expected);
    for (unsigned i = 0; i < 40; i++) {
        to[i] = (gex_Memvec_t){there + 100 * i, i};
        memcpy(expected + 100 * i, local + at, i);
        at += i;
    }
    for (unsigned i = 0; i < 13; i++) {
        from[i] = (gex_Memvec_t){local + 60 * i, 60};
    }
    gex_VIS_VectorPutBlocking(tm, next, 40, to, 13, from, 0);
    gex_RMA_GetBlocking(tm, copy, next, there, sizeof copy, 0);
    CHECK(!memcmp(copy, expected, sizeof copy));
    memset(copy, 0, sizeof copy);
    for (unsigned i = 0; i < 13; i++) {
        from[i].gex_addr = copy + 60 * i;
    }
    gex_VIS_VectorGetBlocking(tm, 13, from, next, 40, to, 0);
    CHECK(!memcmp(copy, local, at));
    for (unsigned i = 0; i < 30; i++) {
        to_list[i] = there + 1000 + 50 * i;
    }
    for (unsigned i = 0; i < 10; i++) {
        from_list[i] = local + 100 * i;
    }
    gex_VIS_IndexedPutBlocking(tm, next, 30, to_list, 7, 10, from_list, 21, 0);
    for (unsigned i = 0; i < 10; i++) {
        from_list[i] = copy + 100 * i;
    }
    gex_VIS_IndexedGetBlocking(tm, 10, from_list, 21, next, 30, to_list, 7, 0);
    for (unsigned i = 0; i < 10; i++) {
        CHECK(!memcmp(copy + 100 * i, local + 100 * i, 21));
    }
}

/* The other arguments of an access without elements count for nothing. */
static void empty(void) {
    const ptrdiff_t strides[] = {8};
    const size_t none[66] = {0}, one[] = {1};
    gex_VIS_StridedPutBlocking(GEX_TM_INVALID, 0, NULL, strides, NULL, strides, 8, none, 1, 0);
    gex_VIS_StridedPutBlocking(GEX_TM_INVALID, 0, NULL, NULL, NULL, NULL, 0, NULL, 100, 0);
    gex_VIS_StridedGetBlocking(GEX_TM_INVALID, NULL, NULL, 0, NULL, NULL, 8, none, 66, 0);
    gex_VIS_StridedGetNBI(GEX_TM_INVALID, NULL, strides, 0, NULL, strides, 0, one, 1, 0);
    gex_Event_Wait(gex_VIS_StridedGetNB(GEX_TM_INVALID, NULL, strides, 0, NULL, strides, 8, none, 1, 0));
}

/* 64 levels are allowed. The last of them has two elements, the others have one. */
static void most_levels(void) {
    ptrdiff_t far[64] = {0}, near[64] = {0};
    size_t count[64];
    for (int i = 0; i < 64; i++) {
        count[i] = i == 63 ? 2 : 1;
    }
    far[63] = 3000;
    near[63] = 100;
    gex_VIS_StridedPutBlocking(tm, next, there, far, local, near, 8, count, 64, 0);
    gex_RMA_GetBlocking(tm, copy, next, there, 3008, 0);
    CHECK(!memcmp(copy, local, 8) && !memcmp(copy + 3000, local + 100, 8));
}

int main(void) {
    begin(NULL, 0);
    empty();
    next = (me + 1) % all;
    there = base_of(next) + 4096;
    for (size_t i = 0; i < sizeof local; i++) {
        local[i] = (unsigned char)(i * 13 + 1 + me);
    }
    strided(5, 50, 400);
    strided(-6, 50, -400);
    strided(400, 6, 3000);
    lists();
    most_levels();
    end();
}
