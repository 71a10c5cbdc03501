/* Vector, indexed and strided accesses: memory that is not contiguous. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H
#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t rank, size_t dst_count, gex_Memvec_t const dst[],
                              size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[], gex_Rank_t rank,
                              size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t rank, size_t dst_count, void *const dst[], size_t dst_size,
                               size_t src_count, void *const src[], size_t src_size, gex_Flags_t flags);
int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_size, gex_Rank_t rank,
                               size_t src_count, void *const src[], size_t src_size, gex_Flags_t flags);
int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dst, const ptrdiff_t dst_strides[], void *src,
                               const ptrdiff_t src_strides[], size_t element, const size_t count[], size_t levels,
                               gex_Flags_t flags);
int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[], gex_Rank_t rank, void *src,
                               const ptrdiff_t src_strides[], size_t element, const size_t count[], size_t levels,
                               gex_Flags_t flags);
/* Every access is done when its call returns, so the NBI and NB forms are the blocking ones. */
#define GEXL_DONE(call) ((void)(call), GEX_EVENT_INVALID)
#define gex_VIS_VectorPutNBI gex_VIS_VectorPutBlocking
#define gex_VIS_VectorGetNBI gex_VIS_VectorGetBlocking
#define gex_VIS_IndexedPutNBI gex_VIS_IndexedPutBlocking
#define gex_VIS_IndexedGetNBI gex_VIS_IndexedGetBlocking
#define gex_VIS_StridedPutNBI gex_VIS_StridedPutBlocking
#define gex_VIS_StridedGetNBI gex_VIS_StridedGetBlocking
#define gex_VIS_VectorPutNB(...) GEXL_DONE(gex_VIS_VectorPutBlocking(__VA_ARGS__))
#define gex_VIS_VectorGetNB(...) GEXL_DONE(gex_VIS_VectorGetBlocking(__VA_ARGS__))
#define gex_VIS_IndexedPutNB(...) GEXL_DONE(gex_VIS_IndexedPutBlocking(__VA_ARGS__))
#define gex_VIS_IndexedGetNB(...) GEXL_DONE(gex_VIS_IndexedGetBlocking(__VA_ARGS__))
#define gex_VIS_StridedPutNB(...) GEXL_DONE(gex_VIS_StridedPutBlocking(__VA_ARGS__))
#define gex_VIS_StridedGetNB(...) GEXL_DONE(gex_VIS_StridedGetBlocking(__VA_ARGS__))

#define GEX_VIS_MAX_PEERCOMPLETION ((size_t)4096)
void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source, size_t size, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif
#endif
