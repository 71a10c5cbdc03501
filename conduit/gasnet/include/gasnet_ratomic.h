/* Remote atomics. All atomics on a word are totally ordered. Those on memory that this process
 * maps are done when the call returns. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H
#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

void gex_AD_Create(gex_AD_t *ad, gex_TM_t tm, gex_DT_t type, gex_OP_t ops, gex_Flags_t flags);
void gex_AD_Destroy(gex_AD_t ad);
gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad);
gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
gex_OP_t gex_AD_QueryOps(gex_AD_t ad);
void gex_AD_SetCData(gex_AD_t ad, const void *value);
void *gex_AD_QueryCData(gex_AD_t ad);

#define GEXL_ATOMIC(NAME, type)                                                                                \
    int gex_AD_OpNBI_##NAME(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,             \
                            type operand1, type operand2, gex_Flags_t flags);                                  \
    gex_Event_t gex_AD_OpNB_##NAME(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,      \
                                   type operand1, type operand2, gex_Flags_t flags);
GEXL_ATOMIC(I32, int32_t)
GEXL_ATOMIC(U32, uint32_t)
GEXL_ATOMIC(I64, int64_t)
GEXL_ATOMIC(U64, uint64_t)
GEXL_ATOMIC(FLT, float)
GEXL_ATOMIC(DBL, double)

#ifdef __cplusplus
}
#endif
#endif
