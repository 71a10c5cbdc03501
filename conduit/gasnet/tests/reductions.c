/* Do broadcasts and reductions compute what a loop computes: for each type, from any memory, with a
 * user's function? */
#include "t.h"

static void longest(const void *left, void *right, size_t count, const void *data) {
    CHECK(data == &client);
    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)left + 24 * i;
        char *b = (char *)right + 24 * i;
        if (strcmp(a, b) > 0) {
            memcpy(b, a, 24);
        }
    }
}

#define REDUCE(NAME, type, op, expected)                                                                      \
    for (unsigned i = 0; i < 1000; i++) {                                                                     \
        ((type *)in)[i] = (type)(i % 50 + me + 1);                                                            \
    }                                                                                                         \
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, out, in, GEX_DT_##NAME, sizeof(type), 1000, op, NULL, NULL, 0)); \
    for (unsigned i = 0; i < 1000; i++) {                                                                     \
        type x = (type)(i % 50 + 1);                                                                          \
        CHECK(((type *)out)[i] == (type)(expected));                                                          \
    }

int main(void) {
    static char in[3000000], out[3000000];
    begin(NULL, 0);
    unsigned sum = all * (all - 1) / 2;
    REDUCE(I32, int32_t, GEX_OP_ADD, all * x + sum)
    REDUCE(U32, uint32_t, GEX_OP_MAX, x + all - 1)
    REDUCE(I64, int64_t, GEX_OP_MIN, x)
    REDUCE(U64, uint64_t, GEX_OP_ADD, all * x + sum)
    REDUCE(FLT, float, GEX_OP_ADD, all * x + sum)
    REDUCE(DBL, double, GEX_OP_MAX, x + all - 1)
    for (unsigned root = 0; root < all; root++) {
        uint64_t bits = (uint64_t)1 << me, got = 99;
        gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, &got, &bits, GEX_DT_U64, 8, 1, GEX_OP_OR, NULL, NULL, 0));
        EQUAL(got, me == root ? ((uint64_t)1 << all) - 1 : 99);
        for (size_t size = 1; size <= sizeof out; size = size * 100 + 1) {
            memset(in, (int)root + 1, size);
            memset(out, 0, size);
            gex_Event_Wait(gex_Coll_BroadcastNB(tm, root, out, in, size, 0));
            CHECK(out[0] == (char)(root + 1) && out[size - 1] == (char)(root + 1));
        }
    }
    for (unsigned i = 0; i < 200; i++) {
        snprintf(in + 24 * i, 24, "%u %u", i, me);
    }
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, out, in, GEX_DT_USER, 24, 200, GEX_OP_USER, longest, &client, 0));
    for (unsigned i = 0; i < 200; i++) {
        char expected[24];
        snprintf(expected, 24, "%u %u", i, all - 1);
        CHECK(!strcmp(out + 24 * i, expected));
    }
    end();
}
