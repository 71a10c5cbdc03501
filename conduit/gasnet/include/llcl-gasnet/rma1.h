/* Puts, gets and VIS of GASNet-1, over those of GASNet-EX. Included by gasnet.h, inside its extern
 * "C". */

static inline void gasnet_put(gasnet_node_t rank, void *destination, void *source, size_t size) {
    gex_RMA_PutBlocking(gexl_world, rank, destination, source, size, 0);
}
static inline void gasnet_put_bulk(gasnet_node_t rank, void *destination, void *source, size_t size) {
    gex_RMA_PutBlocking(gexl_world, rank, destination, source, size, 0);
}
static inline void gasnet_put_nbi(gasnet_node_t rank, void *destination, void *source, size_t size) {
    gex_RMA_PutNBI(gexl_world, rank, destination, source, size, GEX_EVENT_NOW, 0);
}
static inline void gasnet_put_nbi_bulk(gasnet_node_t rank, void *destination, void *source, size_t size) {
    gex_RMA_PutNBI(gexl_world, rank, destination, source, size, GEX_EVENT_DEFER, 0);
}
static inline gasnet_handle_t gasnet_put_nb(gasnet_node_t rank, void *destination, void *source, size_t size) {
    return gex_RMA_PutNB(gexl_world, rank, destination, source, size, GEX_EVENT_NOW, 0);
}
static inline gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t rank, void *destination, void *source, size_t size) {
    return gex_RMA_PutNB(gexl_world, rank, destination, source, size, GEX_EVENT_DEFER, 0);
}
static inline void gasnet_get(void *destination, gasnet_node_t rank, void *source, size_t size) {
    gex_RMA_GetBlocking(gexl_world, destination, rank, source, size, 0);
}
static inline void gasnet_get_bulk(void *destination, gasnet_node_t rank, void *source, size_t size) {
    gex_RMA_GetBlocking(gexl_world, destination, rank, source, size, 0);
}
static inline void gasnet_get_nbi(void *destination, gasnet_node_t rank, void *source, size_t size) {
    gex_RMA_GetNBI(gexl_world, destination, rank, source, size, 0);
}
static inline void gasnet_get_nbi_bulk(void *destination, gasnet_node_t rank, void *source, size_t size) {
    gex_RMA_GetNBI(gexl_world, destination, rank, source, size, 0);
}
static inline gasnet_handle_t gasnet_get_nb(void *destination, gasnet_node_t rank, void *source, size_t size) {
    return gex_RMA_GetNB(gexl_world, destination, rank, source, size, 0);
}
static inline gasnet_handle_t gasnet_get_nb_bulk(void *destination, gasnet_node_t rank, void *source, size_t size) {
    return gex_RMA_GetNB(gexl_world, destination, rank, source, size, 0);
}
static inline void gasnet_memset(gasnet_node_t rank, void *destination, int value, size_t size) {
    unsigned char *to;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(gexl_world, rank, destination, size, &to))) {
        memset(to, value, size);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    } else {
        gexl_set(gexl_world, rank, destination, value, size);
    }
}
static inline void gasnet_memset_nbi(gasnet_node_t rank, void *destination, int value, size_t size) {
    gasnet_memset(rank, destination, value, size);
}
static inline gasnet_handle_t gasnet_memset_nb(gasnet_node_t rank, void *destination, int value, size_t size) {
    gasnet_memset(rank, destination, value, size);
    return GASNET_INVALID_HANDLE;
}
static inline void gasnet_put_val(gasnet_node_t rank, void *destination, gasnet_register_value_t value, size_t size) {
    gex_RMA_PutBlockingVal(gexl_world, rank, destination, value, size, 0);
}
static inline void gasnet_put_nbi_val(gasnet_node_t rank, void *destination, gasnet_register_value_t value, size_t size) {
    gex_RMA_PutNBIVal(gexl_world, rank, destination, value, size, 0);
}
static inline gasnet_handle_t gasnet_put_nb_val(gasnet_node_t rank, void *destination, gasnet_register_value_t value,
                                                size_t size) {
    return gex_RMA_PutNBVal(gexl_world, rank, destination, value, size, 0);
}
static inline gasnet_register_value_t gasnet_get_val(gasnet_node_t rank, void *source, size_t size) {
    return gex_RMA_GetBlockingVal(gexl_world, rank, source, size, 0);
}
/* The handle is the value itself, since the get is done. */
static inline gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t rank, void *source, size_t size) {
    return gex_RMA_GetBlockingVal(gexl_world, rank, source, size, 0);
}
#define gasnet_wait_syncnb_valget(handle) ((gasnet_register_value_t)(handle))

/* A try of GASNet-1 polls, unlike a test of GASNet-EX. */
static inline int gasnet_try_syncnb(gasnet_handle_t handle) {
    gasnet_AMPoll();
    return gex_Event_Test(handle) ? GASNET_ERR_NOT_READY : GASNET_OK;
}
static inline int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t count) {
    gasnet_AMPoll();
    return gex_Event_TestSome(handles, count, 0) ? GASNET_ERR_NOT_READY : GASNET_OK;
}
static inline int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t count) {
    gasnet_AMPoll();
    return gex_Event_TestAll(handles, count, 0) ? GASNET_ERR_NOT_READY : GASNET_OK;
}
/* Not in the specification, but in GASNet's headers: a try that does not poll. */
#define gasnet_try_syncnb_nopoll(handle) gex_Event_Test(handle)
#define gasnet_try_syncnb_some_nopoll(handles, count) gex_Event_TestSome((handles), (count), 0)
#define gasnet_try_syncnb_all_nopoll(handles, count) gex_Event_TestAll((handles), (count), 0)
static inline int gexl_try_syncnbi(gex_EC_t mask) {
    gasnet_AMPoll();
    return gex_NBI_Test(mask, 0) ? GASNET_ERR_NOT_READY : GASNET_OK;
}
#define gasnet_wait_syncnb(handle) gex_Event_Wait(handle)
#define gasnet_wait_syncnb_some(handles, count) gex_Event_WaitSome((handles), (count), 0)
#define gasnet_wait_syncnb_all(handles, count) gex_Event_WaitAll((handles), (count), 0)
#define gasnet_try_syncnbi_puts() gexl_try_syncnbi(GEX_EC_PUT)
#define gasnet_try_syncnbi_gets() gexl_try_syncnbi(GEX_EC_GET)
#define gasnet_try_syncnbi_all() gexl_try_syncnbi(GEX_EC_ALL)
#define gasnet_wait_syncnbi_puts() gex_NBI_Wait(GEX_EC_PUT, 0)
#define gasnet_wait_syncnbi_gets() gex_NBI_Wait(GEX_EC_GET, 0)
#define gasnet_wait_syncnbi_all() gex_NBI_Wait(GEX_EC_ALL, 0)
#define gasnet_begin_nbi_accessregion() gex_NBI_BeginAccessRegion(0)
#define gasnet_end_nbi_accessregion() gex_NBI_EndAccessRegion(0)

/* Vector, indexed and strided accesses. gasnet_memvec_t and gex_Memvec_t have the same layout. */
#define GEXL_VIS1(suffix, form, result, how)                                                                     \
    static inline result gasnet_putv##suffix(gasnet_node_t rank, size_t dst_count, gasnet_memvec_t const dst[],  \
                                             size_t src_count, gasnet_memvec_t const src[]) {                    \
        how gex_VIS_VectorPut##form(gexl_world, rank, dst_count, (gex_Memvec_t const *)(const void *)dst,        \
                                  src_count, (gex_Memvec_t const *)(const void *)src, 0);                        \
    }                                                                                                            \
    static inline result gasnet_getv##suffix(size_t dst_count, gasnet_memvec_t const dst[], gasnet_node_t rank,  \
                                             size_t src_count, gasnet_memvec_t const src[]) {                    \
        how gex_VIS_VectorGet##form(gexl_world, dst_count, (gex_Memvec_t const *)(const void *)dst, rank,        \
                                  src_count, (gex_Memvec_t const *)(const void *)src, 0);                        \
    }                                                                                                            \
    static inline result gasnet_puti##suffix(gasnet_node_t rank, size_t dst_count, void *const dst[],            \
                                             size_t dst_size, size_t src_count, void *const src[],               \
                                             size_t src_size) {                                                  \
        how gex_VIS_IndexedPut##form(gexl_world, rank, dst_count, dst, dst_size, src_count, src, src_size, 0);   \
    }                                                                                                            \
    static inline result gasnet_geti##suffix(size_t dst_count, void *const dst[], size_t dst_size,               \
                                             gasnet_node_t rank, size_t src_count, void *const src[],            \
                                             size_t src_size) {                                                  \
        how gex_VIS_IndexedGet##form(gexl_world, dst_count, dst, dst_size, rank, src_count, src, src_size, 0);   \
    }                                                                                                            \
    static inline result gasnet_puts##suffix(gasnet_node_t rank, void *dst, const size_t dst_strides[],          \
                                             void *src, const size_t src_strides[], const size_t count[],        \
                                             size_t levels) {                                                    \
        how gex_VIS_StridedPut##form(gexl_world, rank, dst, (const ptrdiff_t *)dst_strides, src,                 \
                                   (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);              \
    }                                                                                                            \
    static inline result gasnet_gets##suffix(void *dst, const size_t dst_strides[], gasnet_node_t rank,          \
                                             void *src, const size_t src_strides[], const size_t count[],        \
                                             size_t levels) {                                                    \
        how gex_VIS_StridedGet##form(gexl_world, dst, (const ptrdiff_t *)dst_strides, rank, src,                 \
                                   (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);              \
    }
GEXL_VIS1(_bulk, Blocking, void, (void))
GEXL_VIS1(_nbi_bulk, NBI, void, (void))
GEXL_VIS1(_nb_bulk, NB, gasnet_handle_t, return)
