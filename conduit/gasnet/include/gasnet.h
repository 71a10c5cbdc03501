/* GASNet-1, over GASNet-EX. docs/gasnet.md says what is offered. */
#ifndef GASNET_H
#define GASNET_H
#define _INCLUDED_GASNET_H 1

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gex_Rank_t gasnet_node_t;
typedef gex_Token_t gasnet_token_t;
typedef gex_Event_t gasnet_handle_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
typedef gex_HSL_t gasnet_hsl_t;
typedef gasnet_register_value_t gasnet_valget_handle_t;
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_GEX_RMA_VALUE_T
#define GASNET_INVALID_HANDLE GEX_EVENT_INVALID
#define GASNET_HSL_INITIALIZER GEX_HSL_INITIALIZER

typedef struct {
    gasnet_handler_t index;
    void (*fnptr)();
} gasnet_handlerentry_t;
typedef struct {
    void *addr;
    size_t len;
} gasnet_memvec_t;

/* gasnet_init makes the client for GASNet-1, whose name the caller does not choose. */
static inline int gasnet_init(int *argc, char ***argv) {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    return gex_Client_Init(&client, &ep, &tm, "GASNET1", argc, argv, GEX_FLAG_USES_GASNET1);
}
int gasnet_attach(gasnet_handlerentry_t *table, int count, uintptr_t segment_size, uintptr_t min_heap_offset);
void gasnet_QueryGexObjects(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, gex_Segment_t *segment);
int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source);
extern gex_TM_t gexl_world;
#define gasnet_mynode() gex_System_QueryJobRank()
#define gasnet_nodes() gex_System_QueryJobSize()
#define gasnet_AMMaxArgs() ((size_t)gex_AM_MaxArgs())
#define gasnet_AMMaxMedium() gex_AM_LUBRequestMedium()
#define gasnet_AMMaxLongRequest() gex_AM_LUBRequestLong()
#define gasnet_AMMaxLongReply() gex_AM_LUBReplyLong()
#define gasnet_hsl_init gex_HSL_Init
#define gasnet_hsl_destroy gex_HSL_Destroy
#define gasnet_hsl_lock gex_HSL_Lock
#define gasnet_hsl_unlock gex_HSL_Unlock
#define gasnet_hsl_trylock gex_HSL_Trylock

#define GEXL_SENDERS1(n)                                                                                        \
    static inline int gasnet_AMRequestShort##n(gasnet_node_t rank, gasnet_handler_t handler GEXL_P##n) {        \
        return gex_AM_RequestShort##n(gexl_world, rank, handler, 0 GEXL_A##n);                                  \
    }                                                                                                           \
    static inline int gasnet_AMRequestMedium##n(gasnet_node_t rank, gasnet_handler_t handler, void *source,     \
                                                size_t size GEXL_P##n) {                                        \
        return gex_AM_RequestMedium##n(gexl_world, rank, handler, source, size, GEX_EVENT_NOW, 0 GEXL_A##n);    \
    }                                                                                                           \
    static inline int gasnet_AMRequestLong##n(gasnet_node_t rank, gasnet_handler_t handler, void *source,       \
                                              size_t size, void *destination GEXL_P##n) {                       \
        return gex_AM_RequestLong##n(gexl_world, rank, handler, source, size, destination, GEX_EVENT_NOW,       \
                                     0 GEXL_A##n);                                                              \
    }                                                                                                           \
    static inline int gasnet_AMRequestLongAsync##n(gasnet_node_t rank, gasnet_handler_t handler, void *source,  \
                                                   size_t size, void *destination GEXL_P##n) {                  \
        return gex_AM_RequestLong##n(gexl_world, rank, handler, source, size, destination, GEX_EVENT_NOW,       \
                                     0 GEXL_A##n);                                                              \
    }                                                                                                           \
    static inline int gasnet_AMReplyShort##n(gasnet_token_t token, gasnet_handler_t handler GEXL_P##n) {        \
        return gex_AM_ReplyShort##n(token, handler, 0 GEXL_A##n);                                               \
    }                                                                                                           \
    static inline int gasnet_AMReplyMedium##n(gasnet_token_t token, gasnet_handler_t handler, void *source,     \
                                              size_t size GEXL_P##n) {                                          \
        return gex_AM_ReplyMedium##n(token, handler, source, size, GEX_EVENT_NOW, 0 GEXL_A##n);                 \
    }                                                                                                           \
    static inline int gasnet_AMReplyLong##n(gasnet_token_t token, gasnet_handler_t handler, void *source,       \
                                            size_t size, void *destination GEXL_P##n) {                         \
        return gex_AM_ReplyLong##n(token, handler, source, size, destination, GEX_EVENT_NOW, 0 GEXL_A##n);      \
    }
GEXL_EACH(GEXL_SENDERS1)
#define gasnet_AMRequestShort(...) GEXL_JOIN(gasnet_AMRequestShort, GEXL_N2(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestMedium(...) GEXL_JOIN(gasnet_AMRequestMedium, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestLong(...) GEXL_JOIN(gasnet_AMRequestLong, GEXL_N5(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMRequestLongAsync(...) GEXL_JOIN(gasnet_AMRequestLongAsync, GEXL_N5(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyShort(...) GEXL_JOIN(gasnet_AMReplyShort, GEXL_N2(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyMedium(...) GEXL_JOIN(gasnet_AMReplyMedium, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gasnet_AMReplyLong(...) GEXL_JOIN(gasnet_AMReplyLong, GEXL_N5(__VA_ARGS__))(__VA_ARGS__)

#include "llcl-gasnet/rma1.h"

#ifdef __cplusplus
}
#endif
#endif
