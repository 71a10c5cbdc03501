/* Vector, indexed and strided accesses: memory that is not contiguous. A strided access has at most
 * 64 levels. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H
#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gexl_form { GEXL_BLOCKING, GEXL_NB, GEXL_NBI };
gex_Event_t gexl_vector_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, size_t dst_count,
                            gex_Memvec_t const dst[], size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
gex_Event_t gexl_vector_get(enum gexl_form form, gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[],
                            gex_Rank_t rank, size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
gex_Event_t gexl_indexed_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, size_t dst_count, void *const dst[],
                             size_t dst_size, size_t src_count, void *const src[], size_t src_size,
                             gex_Flags_t flags);
gex_Event_t gexl_indexed_get(enum gexl_form form, gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_size,
                             gex_Rank_t rank, size_t src_count, void *const src[], size_t src_size,
                             gex_Flags_t flags);
gex_Event_t gexl_strided_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, void *dst,
                             const ptrdiff_t dst_strides[], void *src, const ptrdiff_t src_strides[], size_t element,
                             const size_t count[], size_t levels, gex_Flags_t flags);
gex_Event_t gexl_strided_get(enum gexl_form form, gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[],
                             gex_Rank_t rank, void *src, const ptrdiff_t src_strides[], size_t element,
                             const size_t count[], size_t levels, gex_Flags_t flags);

/* The three forms of each access. GEXL_EVENT and GEXL_ZERO: what a form returns. */
#define GEXL_EVENT(call) (call)
#define GEXL_ZERO(call) ((void)(call), 0)
#define GEXL_VIS(suffix, form, result, made)                                                                              \
    static inline result gex_VIS_VectorPut##suffix(gex_TM_t tm, gex_Rank_t rank, size_t dst_count,                        \
                                                   gex_Memvec_t const dst[], size_t src_count,                            \
                                                   gex_Memvec_t const src[], gex_Flags_t flags) {                         \
        return made(gexl_vector_put(form, tm, rank, dst_count, dst, src_count, src, flags));                              \
    }                                                                                                                     \
    static inline result gex_VIS_VectorGet##suffix(gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[],               \
                                                   gex_Rank_t rank, size_t src_count, gex_Memvec_t const src[],           \
                                                   gex_Flags_t flags) {                                                   \
        return made(gexl_vector_get(form, tm, dst_count, dst, rank, src_count, src, flags));                              \
    }                                                                                                                     \
    static inline result gex_VIS_IndexedPut##suffix(gex_TM_t tm, gex_Rank_t rank, size_t dst_count,                       \
                                                    void *const dst[], size_t dst_size, size_t src_count,                 \
                                                    void *const src[], size_t src_size, gex_Flags_t flags) {              \
        return made(gexl_indexed_put(form, tm, rank, dst_count, dst, dst_size, src_count, src, src_size, flags));         \
    }                                                                                                                     \
    static inline result gex_VIS_IndexedGet##suffix(gex_TM_t tm, size_t dst_count, void *const dst[],                     \
                                                    size_t dst_size, gex_Rank_t rank, size_t src_count,                   \
                                                    void *const src[], size_t src_size, gex_Flags_t flags) {              \
        return made(gexl_indexed_get(form, tm, dst_count, dst, dst_size, rank, src_count, src, src_size, flags));         \
    }                                                                                                                     \
    static inline result gex_VIS_StridedPut##suffix(gex_TM_t tm, gex_Rank_t rank, void *dst,                              \
                                                    const ptrdiff_t dst_strides[], void *src,                             \
                                                    const ptrdiff_t src_strides[], size_t element,                        \
                                                    const size_t count[], size_t levels, gex_Flags_t flags) {             \
        return made(gexl_strided_put(form, tm, rank, dst, dst_strides, src, src_strides, element, count, levels, flags)); \
    }                                                                                                                     \
    static inline result gex_VIS_StridedGet##suffix(gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[],                \
                                                    gex_Rank_t rank, void *src, const ptrdiff_t src_strides[],            \
                                                    size_t element, const size_t count[], size_t levels,                  \
                                                    gex_Flags_t flags) {                                                  \
        return made(gexl_strided_get(form, tm, dst, dst_strides, rank, src, src_strides, element, count, levels, flags)); \
    }
GEXL_VIS(Blocking, GEXL_BLOCKING, int, GEXL_ZERO)
GEXL_VIS(NB, GEXL_NB, gex_Event_t, GEXL_EVENT)
GEXL_VIS(NBI, GEXL_NBI, int, GEXL_ZERO)

#define GEX_VIS_MAX_PEERCOMPLETION ((size_t)4096)
void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source, size_t size, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif
#endif
