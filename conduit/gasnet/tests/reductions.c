/* Do broadcasts and reductions compute what a loop computes: with each operation on each type,
 * from any memory, to each root and to no other rank, with a user's function? */
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

static char in[3000000], out[3000000];

/* What a rank contributes as element i. */
static int given(unsigned i, unsigned rank) { return (int)(i % 50) - 25 + 3 * (int)rank; }

/* `next`: the result of one more rank, from x and the result `so_far` of the ranks before. */
#define REDUCE(NAME, type, op, next)                                                                            \
    for (unsigned i = 0; i < 1000; i++) {                                                                       \
        ((type *)in)[i] = (type)given(i, me);                                                                   \
        ((type *)out)[i] = 99;                                                                                  \
    }                                                                                                           \
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, out, in, GEX_DT_##NAME, sizeof(type), 1000, op, NULL, NULL, 0));  \
    CHECK_ALL(type, next)                                                                                       \
    memset(out, 77, sizeof(type) * 1000);                                                                       \
    gex_Event_Wait(                                                                                             \
        gex_Coll_ReduceToOneNB(tm, all - 1, out, in, GEX_DT_##NAME, sizeof(type), 1000, op, NULL, NULL, 0));    \
    if (me == all - 1) {                                                                                        \
        CHECK_ALL(type, next)                                                                                   \
    } else {                                                                                                    \
        CHECK(out[0] == 77 && out[sizeof(type) * 1000 - 1] == 77);                                              \
    }
#define CHECK_ALL(type, next)                                                                                   \
    for (unsigned i = 0; i < 1000; i++) {                                                                       \
        type so_far = (type)given(i, 0);                                                                        \
        for (unsigned r = 1; r < all; r++) {                                                                    \
            type x = (type)given(i, r);                                                                         \
            so_far = (type)(next);                                                                              \
        }                                                                                                       \
        CHECK(((type *)out)[i] == so_far);                                                                      \
    }
#define NUMBERS(NAME, type)                                                                                     \
    REDUCE(NAME, type, GEX_OP_ADD, so_far + x)                                                                  \
    REDUCE(NAME, type, GEX_OP_MULT, so_far * x)                                                                 \
    REDUCE(NAME, type, GEX_OP_MIN, so_far < x ? so_far : x)                                                     \
    REDUCE(NAME, type, GEX_OP_MAX, so_far > x ? so_far : x)
#define BITS(NAME, type)                                                                                        \
    REDUCE(NAME, type, GEX_OP_AND, so_far & x)                                                                  \
    REDUCE(NAME, type, GEX_OP_OR, so_far | x)                                                                   \
    REDUCE(NAME, type, GEX_OP_XOR, so_far ^ x)

static void numbers(void) {
    NUMBERS(I32, int32_t)
    NUMBERS(U32, uint32_t)
    NUMBERS(I64, int64_t)
    NUMBERS(U64, uint64_t)
    NUMBERS(FLT, float)
    NUMBERS(DBL, double)
}
static void bits(void) {
    BITS(I32, int32_t)
    BITS(U32, uint32_t)
    BITS(I64, int64_t)
    BITS(U64, uint64_t)
}

int main(void) {
    begin(NULL, 0);
    numbers();
    bits();
    for (unsigned root = 0; root < all; root++) {
        uint64_t mine = (uint64_t)1 << me, got = 99;
        gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, &got, &mine, GEX_DT_U64, 8, 1, GEX_OP_OR, NULL, NULL, 0));
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
