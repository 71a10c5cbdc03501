/* GASNet-EX over libllcl. This header includes gasnet_vis.h (vector, indexed and strided accesses),
 * gasnet_ratomic.h (atomics) and gasnet_coll.h (broadcast and reductions). docs/gasnet.md says what
 * is offered. */
#ifndef GASNETEX_H
#define GASNETEX_H
#define _INCLUDED_GASNETEX_H 1

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(GASNET_SEQ) && !defined(GASNET_PARSYNC) && !defined(GASNET_PAR)
#error define GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR before a GASNet header
#endif
#include "gasnet_config.h"
#include "gasnet_fwd.h"
#include "llcl-gasnet/types.h"
#include "gasnet_tools.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The job. The name of gex_Client_Init's function contains the mode that the client is compiled
 * for, and a number that changes with the numbers of the constants. A library of another mode, or
 * of other constants, has no function of that name, so the linker reports a mismatch. */
#if defined(GASNET_SEQ)
#define gexl_client_init gexl_client_init_2_seq
#elif defined(GASNET_PARSYNC)
#define gexl_client_init gexl_client_init_2_parsync
#else
#define gexl_client_init gexl_client_init_2_par
#endif
int gexl_client_init(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, const char *name, int *argc,
                     char ***argv, gex_Flags_t flags);
#define gex_Client_Init gexl_client_init
void gasnet_exit(int code) GASNETT_NORETURN;
gex_Rank_t gex_System_QueryJobRank(void);
gex_Rank_t gex_System_QueryJobSize(void);
int gex_System_GetVerboseErrors(void);
void gex_System_SetVerboseErrors(int enable);
uint64_t gex_System_QueryMaxThreads(void);
int gex_System_QueryHiddenAMConcurrencyLevel(void);
int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count,
                                    const gex_ProgressThreadInfo_t **info, gex_Flags_t flags);
void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine);
void gex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine);
void gex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *nbrhd, gex_Rank_t *hosts, gex_Rank_t *host);
char *gasnet_getenv(const char *name);
const char *gasnet_ErrorName(int code);
const char *gasnet_ErrorDesc(int code);
int gasnet_set_waitmode(int mode);

/* Clients, endpoints, segments. */
gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
const char *gex_Client_QueryName(gex_Client_t client);
void gex_Client_SetCData(gex_Client_t client, const void *value);
void *gex_Client_QueryCData(gex_Client_t client);
gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
gex_EP_Capabilities_t gex_EP_QueryCapabilities(gex_EP_t ep);
void gex_EP_SetCData(gex_EP_t ep, const void *value);
void *gex_EP_QueryCData(gex_EP_t ep);
int gex_EP_Create(gex_EP_t *ep, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t entries);
gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owner_address,
                                       void **local_address, uintptr_t *size, gex_Flags_t flags);
int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t count, gex_Flags_t flags);
int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);
int gex_Segment_Attach(gex_Segment_t *segment, gex_TM_t tm, uintptr_t size);
int gex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t size,
                       gex_MK_t kind, gex_Flags_t flags);
void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);
int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owner_address, void **local_address,
                           uintptr_t *size);
gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment);
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment);
void *gex_Segment_QueryAddr(gex_Segment_t segment);
uintptr_t gex_Segment_QuerySize(gex_Segment_t segment);
void gex_Segment_SetCData(gex_Segment_t segment, const void *value);
void *gex_Segment_QueryCData(gex_Segment_t segment);
uintptr_t gasnet_getMaxLocalSegmentSize(void);
uintptr_t gasnet_getMaxGlobalSegmentSize(void);
int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int count);
int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int count);

/* Teams. */
gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
gex_EP_t gex_TM_QueryEP(gex_TM_t tm);
gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
void gex_TM_SetCData(gex_TM_t tm, const void *value);
void *gex_TM_QueryCData(gex_TM_t tm);
size_t gex_TM_Split(gex_TM_t *new_tm, gex_TM_t parent, int color, int key, void *scratch, size_t scratch_size,
                    gex_Flags_t flags);
size_t gex_TM_Create(gex_TM_t *new_tms, size_t new_count, gex_TM_t parent, gex_EP_Location_t *members,
                     size_t count, gex_Addr_t *scratch, size_t scratch_size, gex_Flags_t flags);
int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch, gex_Flags_t flags);
gex_TM_t gex_TM_Pair(gex_EP_t ep, gex_EP_Index_t remote);
gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank);
gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);
static inline gex_Rank_t gex_TM_QueryRank(gex_TM_t tm) { return tm->rank; }
static inline gex_Rank_t gex_TM_QuerySize(gex_TM_t tm) { return tm->size; }
static inline gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank) {
    return tm->jobranks ? tm->jobranks[rank] : rank;
}
gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);

/* Named barriers of GASNet-1. */
void gasnet_barrier_notify(int id, int flags);
int gasnet_barrier_wait(int id, int flags);
int gasnet_barrier_try(int id, int flags);
int gasnet_barrier_result(int *id);
static inline int gasnet_barrier(int id, int flags) {
    gasnet_barrier_notify(id, flags);
    return gasnet_barrier_wait(id, flags);
}

/* Polling. gexl_pause polls once; every so many calls it also yields the core or sleeps
 * (gasnet_set_waitmode). `rounds` counts the calls of one wait. */
int gasnet_AMPoll(void);
void gexl_pause(unsigned *rounds);
#define GASNET_BLOCKUNTIL(condition)         \
    do {                                     \
        unsigned gexl_rounds = 0;            \
        while (!(condition)) {               \
            gexl_pause(&gexl_rounds);        \
        }                                    \
        gasnett_local_rmb();                 \
    } while (0)

/* Handlers run only inside a poll or a send, so there are no interrupts to hold. */
#define gasnet_hold_interrupts() ((void)0)
#define gasnet_resume_interrupts() ((void)0)

/* Handler-safe locks. They are locks in all three modes: libllcl's own threads may run the client's
 * function of a reduction. */
void gex_HSL_Init(gex_HSL_t *lock);
void gex_HSL_Destroy(gex_HSL_t *lock);
void gex_HSL_Lock(gex_HSL_t *lock);
void gex_HSL_Unlock(gex_HSL_t *lock);
int gex_HSL_Trylock(gex_HSL_t *lock);

/* Memory kinds: gex_MK_Create refuses, since the conduit offers host memory only. */
int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const void *args, gex_Flags_t flags);
void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags);

#include "llcl-gasnet/am.h"
#include "llcl-gasnet/rma.h"

#ifdef __cplusplus
}
#endif

#include "gasnet_vis.h"
#include "gasnet_ratomic.h"
#include "gasnet_coll.h"

#endif
