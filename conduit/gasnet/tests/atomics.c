/* Does each remote atomic compute what its name says, and is it atomic when all ranks use one
 * word? */
#include "t.h"

#define ALL_OPS (GEX_OP_ADD | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | \
                 GEX_OP_FADD | GEX_OP_FMULT | GEX_OP_FMIN | GEX_OP_FMAX | GEX_OP_FSUB | GEX_OP_FINC |       \
                 GEX_OP_FDEC | GEX_OP_SET | GEX_OP_CAS | GEX_OP_SWAP | GEX_OP_FCAS | GEX_OP_GET)
#define BIT_OPS (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR)

#define FORM(op) (fetches ? GEX_OP_TO_FETCHING(op) : (op))
#define STEP(op, first, second, was, is)                                                                       \
    got = 0;                                                                                                   \
    gex_Event_Wait(OP(ad, &got, next, word, op, first, second, 0));                                            \
    CHECK((op) < GEX_OP_FAND || got == (was));                                                                 \
    gex_Event_Wait(OP(ad, &got, next, word, GEX_OP_GET, 0, 0, 0));                                             \
    CHECK(got == (is));
#define TYPE(NAME, type, ops)                                                                                  \
    {                                                                                                          \
        type got;                                                                                              \
        gex_AD_Create(&ad, tm, GEX_DT_##NAME, ops, 0);                                                         \
        CHECK(gex_AD_QueryTM(ad) == tm && gex_AD_QueryDT(ad) == GEX_DT_##NAME && gex_AD_QueryOps(ad) == (ops)); \
        for (int fetches = 0; fetches <= 1; fetches++) {                                                       \
            STEP(GEX_OP_SET, 12, 0, 0, 12)                                                                     \
            STEP(FORM(GEX_OP_ADD), 30, 0, 12, 42)                                                              \
            STEP(FORM(GEX_OP_SUB), 2, 0, 42, 40)                                                               \
            STEP(FORM(GEX_OP_MULT), 3, 0, 40, 120)                                                             \
            STEP(FORM(GEX_OP_MIN), 100, 0, 120, 100)                                                           \
            STEP(FORM(GEX_OP_MAX), 110, 0, 100, 110)                                                           \
            STEP(FORM(GEX_OP_INC), 0, 0, 110, 111)                                                             \
            STEP(FORM(GEX_OP_DEC), 0, 0, 111, 110)                                                             \
            STEP(FORM(GEX_OP_CAS), 111, 5, 110, 110)                                                           \
            STEP(FORM(GEX_OP_CAS), 110, 5, 110, 5)                                                             \
        }                                                                                                      \
        STEP(GEX_OP_SWAP, 77, 0, 5, 77)                                                                        \
        gex_AD_Destroy(ad);                                                                                    \
    }

int main(void) {
    gex_AD_t ad;
    gex_Rank_t near;
    begin(NULL, 0);
    gex_System_QueryNbrhdInfo(NULL, &near, NULL);
    unsigned rounds = near == all ? 2000 : 100;
    unsigned next = (me + 1) % all;
    char *word = base_of(next) + 64;
#define OP gex_AD_OpNB_I32
    TYPE(I32, int32_t, ALL_OPS)
#undef OP
#define OP gex_AD_OpNB_U64
    TYPE(U64, uint64_t, ALL_OPS)
#undef OP
#define OP gex_AD_OpNB_FLT
    TYPE(FLT, float, ALL_OPS)
#undef OP
#define OP gex_AD_OpNB_DBL
    TYPE(DBL, double, ALL_OPS)
    barrier();
    uint64_t was;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_XOR | GEX_OP_FXOR | BIT_OPS, 0);
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
    end();
}
