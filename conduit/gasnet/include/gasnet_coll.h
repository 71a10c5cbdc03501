/* Collectives that move or combine data. gex_Coll_BarrierNB is in gasnetex.h. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H
#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*gex_Coll_ReduceFn_t)(const void *left, void *right_and_result, size_t count, const void *data);

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t size,
                                 gex_Flags_t flags);
gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t type,
                                   size_t type_size, size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function,
                                   void *data, gex_Flags_t flags);
gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t type, size_t type_size,
                                   size_t count, gex_OP_t op, gex_Coll_ReduceFn_t function, void *data,
                                   gex_Flags_t flags);

#ifdef __cplusplus
}
#endif
#endif
