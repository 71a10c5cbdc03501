/* Types of GASNet-EX, and those that the inlined functions use. Included by gasnetex.h. */
#ifndef LLCL_GASNET_TYPES_H
#define LLCL_GASNET_TYPES_H

#include <pthread.h>

#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_UNNAMED (8 | GASNET_BARRIERFLAG_ANONYMOUS)

#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2

typedef struct gexl_client *gex_Client_t;
typedef struct gexl_ep *gex_EP_t;
typedef struct gexl_segment *gex_Segment_t;
typedef struct gexl_ad *gex_AD_t;
typedef struct gexl_kind *gex_MK_t;
typedef struct gexl_token *gex_Token_t;
typedef struct gexl_source *gex_AM_SrcDesc_t;
#define GEX_CLIENT_INVALID ((gex_Client_t)0)
#define GEX_EP_INVALID ((gex_EP_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)0)
#define GEX_TM_INVALID ((gex_TM_t)0)
#define GEX_AD_INVALID ((gex_AD_t)0)
#define GEX_MK_INVALID ((gex_MK_t)0)
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)0)

/* The bound segment of a team's member: `base` is its address at the owner, and `base` + `delta` -
 * GEXL_MAPPED in this process. Processes map whole pages, so this `delta` is odd, and a client that
 * is compiled with NDEBUG reads only it. A segment that this process does not map has size 0 and
 * `far`, an even number. A segment that this rank does not know has zeroes only. An access of up to
 * 8 bytes at one of the first `words` bytes lies in the segment: one comparison shows that. The
 * general check covers the last 7 bytes. */
struct gexl_far;
struct gexl_place {
    uintptr_t base;
    uintptr_t words;
    union {
        uintptr_t delta;
        const struct gexl_far *far;
    } at;
    uintptr_t size;
};
#define GEXL_MAPPED 1

/* The part of a team that inlined functions use. `jobranks` is NULL if ranks and job ranks are
 * equal. The members' places lie right behind it, by rank: a pointer to them would make each access
 * wait for one more load. */
typedef struct gexl_tm {
    const gex_Rank_t *jobranks;
    gex_Rank_t rank;
    gex_Rank_t size;
} *gex_TM_t;

typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
typedef void (*gex_AM_Fn_t)();
#define GEX_AM_INDEX_BASE 64

typedef struct {
    gex_AM_Index_t gex_index;
    gex_AM_Fn_t gex_fnptr;
    gex_Flags_t gex_flags;
    unsigned int gex_nargs;
    const void *gex_cdata;
    const char *gex_name;
} gex_AM_Entry_t;

typedef struct {
    gex_Rank_t gex_srcrank;
    gex_EP_t gex_ep;
    const gex_AM_Entry_t *gex_entry;
    uint8_t gex_is_req;
    uint8_t gex_is_long;
} gex_Token_Info_t;
typedef uint32_t gex_TI_t;
#define GEX_TI_SRCRANK (1u << 0)
#define GEX_TI_ENTRY (1u << 1)
#define GEX_TI_IS_REQ (1u << 2)
#define GEX_TI_IS_LONG (1u << 3)
#define GEX_TI_EP (1u << 4)
#define GEX_TI_ALL (31u)

typedef uintptr_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8

typedef struct {
    void *gex_addr;
    size_t gex_len;
} gex_Memvec_t;

typedef struct {
    gex_Rank_t gex_rank;
    gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

typedef const struct {
    gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

typedef struct {
    const char *gex_device_list;
    unsigned int gex_thread_roles;
    void *(*gex_progress_fn)(void *);
    void *gex_progress_arg;
} gex_ProgressThreadInfo_t;
#define GEX_THREAD_ROLE_RCV 1u
#define GEX_THREAD_ROLE_SND 2u

typedef uint32_t gex_EC_t;
/* The local completion of a put is a part of the put; a message has nothing else. */
#define GEX_EC_LC (1u << 1)
#define GEX_EC_AM GEX_EC_LC
#define GEX_EC_PUT (GEX_EC_LC | 1u << 0)
#define GEX_EC_GET (1u << 2)
#define GEX_EC_RMW (1u << 3)
#define GEX_EC_ALL (~0u)

typedef struct {
    void *addr;
    uintptr_t size;
} gasnet_seginfo_t;
typedef struct {
    gex_Rank_t host;
    gex_Rank_t supernode;
    /* Added to an address in the rank's attached segment, it gives the address in this process, as
     * GASNET_PSHM promises; 0 if this process does not map the segment. */
    uintptr_t offset;
} gasnet_nodeinfo_t;

/* The conduit needs no information about the calling thread. */
typedef void *gasnet_threadinfo_t;
#define GASNET_BEGIN_FUNCTION() ((void)0)
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info) ((void)(info))

typedef struct {
    pthread_mutex_t mutex;
} gex_HSL_t;
#define GEX_HSL_INITIALIZER {PTHREAD_MUTEX_INITIALIZER}

#endif
