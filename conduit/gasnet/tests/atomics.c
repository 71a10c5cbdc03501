/* Does each remote atomic compute what its name says, on each type, and is it atomic when all ranks
 * use one word? */
#include "t.h"

#include <stdbool.h>

#define BIT_OPS (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR)
#define OTHER_OPS (GEX_OP_ADD | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | \
                   GEX_OP_FADD | GEX_OP_FMULT | GEX_OP_FMIN | GEX_OP_FMAX | GEX_OP_FSUB | GEX_OP_FINC |       \
                   GEX_OP_FDEC | GEX_OP_SET | GEX_OP_CAS | GEX_OP_SWAP | GEX_OP_FCAS | GEX_OP_GET)

/* The types for which a row of the table holds. */
#define SIGNED (GEX_DT_I32 | GEX_DT_I64 | GEX_DT_FLT | GEX_DT_DBL)
#define UNSIGNED (GEX_DT_U32 | GEX_DT_U64)
#define INTEGERS (GEX_DT_I32 | GEX_DT_I64 | UNSIGNED)
#define WIDE (GEX_DT_I64 | GEX_DT_U64 | GEX_DT_DBL)
#define ALL (SIGNED | UNSIGNED)

/* Each row: a word that is `was`, and `op` with the operands a and b, leave `is`. */
static const struct {
    gex_OP_t op;
    gex_DT_t types;
    int64_t was, a, b, is;
} rows[] = {{GEX_OP_SET, ALL, 7, 12, 3, 12},
            {GEX_OP_ADD, ALL, 12, 30, 3, 42},
            {GEX_OP_ADD, ALL, -3, 5, 3, 2},
            {GEX_OP_ADD, WIDE, (int64_t)3 << 32, (int64_t)5 << 32, 3, (int64_t)8 << 32},
            {GEX_OP_SUB, ALL, 42, 2, 3, 40},
            {GEX_OP_SUB, ALL, 2, 5, 3, -3},
            {GEX_OP_MULT, ALL, 40, 3, 7, 120},
            {GEX_OP_MULT, SIGNED, -40, 3, 7, -120},
            {GEX_OP_MULT, WIDE, (int64_t)1 << 20, (int64_t)1 << 20, 7, (int64_t)1 << 40},
            {GEX_OP_MIN, ALL, 120, 100, 3, 100},
            {GEX_OP_MIN, ALL, 100, 120, 3, 100},
            {GEX_OP_MIN, SIGNED, -4, 2, 3, -4},
            {GEX_OP_MIN, UNSIGNED, -4, 2, 3, 2},
            {GEX_OP_MAX, ALL, 120, 100, 3, 120},
            {GEX_OP_MAX, ALL, 100, 120, 3, 120},
            {GEX_OP_MAX, SIGNED, -4, 2, 3, 2},
            {GEX_OP_MAX, UNSIGNED, -4, 2, 3, -4},
            {GEX_OP_INC, ALL, 110, 9, 3, 111},
            {GEX_OP_INC, INTEGERS, -1, 9, 3, 0},
            {GEX_OP_DEC, ALL, 111, 9, 3, 110},
            {GEX_OP_DEC, INTEGERS, 0, 9, 3, -1},
            {GEX_OP_AND, INTEGERS, 12, 10, 3, 8},
            {GEX_OP_OR, INTEGERS, 12, 10, 3, 14},
            {GEX_OP_XOR, INTEGERS, 12, 10, 3, 6},
            {GEX_OP_CAS, ALL, 110, 111, 5, 110},
            {GEX_OP_CAS, ALL, 110, 110, 5, 5}};

/* run_*: the rows on a word of `rank`, with and without fetching, as NB and as NBI. The 4 bytes
 * behind the word stay as they are. */
#define RUN(NAME, type, ops)                                                                                \
    static void run_##NAME(unsigned rank, char *word) {                                                     \
        gex_AD_t ad;                                                                                        \
        gex_AD_Create(&ad, tm, GEX_DT_##NAME, ops, 0);                                                      \
        CHECK(gex_AD_QueryTM(ad) == tm && gex_AD_QueryDT(ad) == GEX_DT_##NAME && gex_AD_QueryOps(ad) == (ops)); \
        gex_RMA_PutBlockingVal(tm, rank, word + sizeof(type), 77, 4, 0);                                    \
        for (size_t i = 0; i < 4 * (sizeof rows / sizeof *rows); i++) {                                     \
            bool fetches = i & 1, nbi = i & 2;                                                              \
            gex_OP_t op = fetches ? GEX_OP_TO_FETCHING(rows[i / 4].op) : rows[i / 4].op;                    \
            type was = (type)rows[i / 4].was, a = (type)rows[i / 4].a, b = (type)rows[i / 4].b, got = 99, now = 0; \
            if (!(rows[i / 4].types & GEX_DT_##NAME)) {                                                     \
                continue;                                                                                   \
            }                                                                                               \
            gex_Event_Wait(gex_AD_OpNB_##NAME(ad, NULL, rank, word, GEX_OP_SET, was, 0, 0));                \
            if (nbi) {                                                                                      \
                gex_AD_OpNBI_##NAME(ad, fetches ? &got : NULL, rank, word, op, a, b, 0);                    \
                gex_NBI_Wait(op == GEX_OP_SET ? GEX_EC_PUT : GEX_EC_RMW, 0);                                \
            } else {                                                                                        \
                gex_Event_Wait(gex_AD_OpNB_##NAME(ad, &got, rank, word, op, a, b, 0));                      \
            }                                                                                               \
            gex_AD_OpNBI_##NAME(ad, &now, rank, word, GEX_OP_GET, 1, 1, 0);                                 \
            gex_NBI_Wait(GEX_EC_GET, 0);                                                                    \
            check_row(i, #NAME, now == (type)rows[i / 4].is && got == (fetches ? was : (type)99), (double)now); \
        }                                                                                                   \
        EQUAL(gex_RMA_GetBlockingVal(tm, rank, word + sizeof(type), 4, 0), 77);                             \
        gex_AD_Destroy(ad);                                                                                 \
    }

static void check_row(size_t i, const char *type, bool right, double now) {
    if (!right) {
        fprintf(stderr, "atomics: rank %u: row %zu of the table, %s, %s%s: the word is %g\n", me, i / 4, type,
                i & 1 ? "fetching, " : "", i & 2 ? "NBI" : "NB", now);
        gasnet_exit(1);
    }
}

RUN(I32, int32_t, OTHER_OPS | BIT_OPS)
RUN(U32, uint32_t, OTHER_OPS | BIT_OPS)
RUN(I64, int64_t, OTHER_OPS | BIT_OPS)
RUN(U64, uint64_t, OTHER_OPS | BIT_OPS)
RUN(FLT, float, OTHER_OPS)
RUN(DBL, double, OTHER_OPS)

/* All ranks use two words of rank 0. */
static void shared_words(unsigned rounds) {
    gex_AD_t ad;
    uint64_t was;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD | BIT_OPS, 0);
    for (unsigned i = 0; i < rounds; i++) {
        gex_AD_OpNBI_U64(ad, &was, 0, base_of(0), GEX_OP_FADD, 1, 0, 0);
        gex_AD_OpNBI_U64(ad, NULL, 0, base_of(0) + 8, GEX_OP_XOR, (uint64_t)1 << me, 0, 0);
        gex_NBI_Wait(GEX_EC_RMW, 0);
    }
    barrier();
    if (me == 0) {
        EQUAL(((uint64_t *)base_of(0))[0], rounds * all);
        EQUAL(((uint64_t *)base_of(0))[1], 0);
    }
    gex_AD_Destroy(ad);
}

int main(void) {
    gex_Rank_t near;
    begin(NULL, 0);
    gex_System_QueryNbrhdInfo(NULL, &near, NULL);
    unsigned next = (me + 1) % all;
    char *word = base_of(next) + 64;
    run_I32(next, word);
    run_U32(next, word);
    run_I64(next, word);
    run_U64(next, word);
    run_FLT(next, word);
    run_DBL(next, word);
    barrier();
    shared_words(near == all ? 2000 : 100);
    end();
}
