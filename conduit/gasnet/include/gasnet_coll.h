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

/* The collectives that GASNet-1 offered as prototypes. Each rank is one image. */
typedef uint32_t gasnet_image_t;
typedef gex_TM_t gasnet_team_handle_t;
typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID
#define GASNET_TEAM_ALL gexl_team_all()
gex_TM_t gexl_team_all(void);

/* A call takes one of the first three flags, and one of the next three. The others may stand beside
 * these, and change nothing. */
#define GASNET_COLL_IN_NOSYNC (1 << 0)
#define GASNET_COLL_IN_MYSYNC (1 << 1)
#define GASNET_COLL_IN_ALLSYNC (1 << 2)
#define GASNET_COLL_OUT_NOSYNC (1 << 3)
#define GASNET_COLL_OUT_MYSYNC (1 << 4)
#define GASNET_COLL_OUT_ALLSYNC (1 << 5)
#define GASNET_COLL_LOCAL (1 << 7)
#define GASNET_COLL_FIXED_THREADS_PER_NODE (1 << 9)
#define GASNET_COLL_DST_IN_SEGMENT (1 << 10)
#define GASNET_COLL_SRC_IN_SEGMENT (1 << 11)
#define GASNET_COLL_DISABLE_AUTOTUNE (1 << 18)
#define GASNET_COLL_NO_IMAGES (1 << 19)

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
                                              size_t size, int flags);
gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
                                            size_t size, int flags);
gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t root, void *dst, void *src,
                                           size_t size, int flags);
gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src, size_t size,
                                               int flags);
gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src, size_t size,
                                             int flags);

/* These take GASNET_TEAM_ALL only, and are the barriers of gasnet.h. */
void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

#define gasnet_coll_wait_sync(event) gex_Event_Wait(event)
#define gasnet_coll_wait_sync_some(events, count) gex_Event_WaitSome(events, count, 0)
#define gasnet_coll_wait_sync_all(events, count) gex_Event_WaitAll(events, count, 0)
#define gasnet_coll_try_sync(event) gex_Event_Test(event)
#define gasnet_coll_try_sync_some(events, count) gex_Event_TestSome(events, count, 0)
#define gasnet_coll_try_sync_all(events, count) gex_Event_TestAll(events, count, 0)

#define gasnet_coll_broadcast(...) gex_Event_Wait(gasnet_coll_broadcast_nb(__VA_ARGS__))
#define gasnet_coll_scatter(...) gex_Event_Wait(gasnet_coll_scatter_nb(__VA_ARGS__))
#define gasnet_coll_gather(...) gex_Event_Wait(gasnet_coll_gather_nb(__VA_ARGS__))
#define gasnet_coll_gather_all(...) gex_Event_Wait(gasnet_coll_gather_all_nb(__VA_ARGS__))
#define gasnet_coll_exchange(...) gex_Event_Wait(gasnet_coll_exchange_nb(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
