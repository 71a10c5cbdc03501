/* DRAFT of llcl.h: will be replaced by the generated header with the same names, types and meaning. */
#ifndef LLCL_H
#define LLCL_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- conventions ---- */
typedef int32_t llcl_status_t;
#define LLCL_OK 0
/* positive: try again; nothing happened, nothing was kept */
#define LLCL_RETRY_QUEUE_FULL 1
#define LLCL_RETRY_NO_TAG 2     /* direct mode only: the table of operations in flight is full */
#define LLCL_RETRY_BUSY 3       /* direct mode: device lock held; region_free: operations under way */
#define LLCL_ERR_INVALID (-1)   /* NULL where not allowed, unknown flag/op/kind, bad size for the call, peer >= size */
#define LLCL_ERR_RANGE (-2)     /* offset+size leaves the region; peer number too large */
#define LLCL_ERR_NO_MEMORY (-3)
#define LLCL_ERR_PEER_DEAD (-4)
#define LLCL_ERR_CANCELED (-5)
#define LLCL_ERR_UNSUPPORTED (-6) /* e.g. float AND */
#define LLCL_ERR_SYSTEM (-7)
#define LLCL_ERR_STATE (-8)     /* e.g. blocking call inside a callback; call on a context being finalized */
#define LLCL_ERR_TIMEOUT (-9)
#define LLCL_ERR_KEY (-10)      /* stale, forged, wrong peer, region of another context */
#define LLCL_ERR_INTERNAL (-11)
const char *llcl_status_string(llcl_status_t status);   /* static text, never NULL */
const char *llcl_last_error(void);                      /* this thread's last message in full */

typedef struct llcl_context llcl_context_t;
typedef struct llcl_region llcl_region_t;
typedef struct llcl_world llcl_world_t;

/* ---- completion ---- */
typedef void (*llcl_callback_fn)(void *data, llcl_status_t status);
#define LLCL_COMPLETE_NONE 0u
#define LLCL_COMPLETE_CALL 1u
#define LLCL_COMPLETE_STORE 2u
#define LLCL_COMPLETE_ADD 3u
#define LLCL_WORD_FAILED ((uint64_t)1 << 63)
typedef struct llcl_completion {
    uint32_t kind;
    uint32_t reserved;      /* 0 */
    llcl_callback_fn call;  /* kind CALL */
    void *target;           /* CALL: data (may be NULL); STORE and ADD: a uint64_t, 8-byte aligned */
} llcl_completion_t;
/* STORE: the word becomes 1 on LLCL_OK, else (uint64_t)(int64_t)status (that is, bit 63 set).
   ADD:   the word grows by 1; when the status is not LLCL_OK bit 63 (LLCL_WORD_FAILED) is set as well. */
llcl_completion_t llcl_no_completion(void);
llcl_completion_t llcl_call(llcl_callback_fn call, void *data);
llcl_completion_t llcl_store_on(uint64_t *word);
llcl_completion_t llcl_add_on(uint64_t *word);

/* ---- 1 life ---- */
#define LLCL_EXECUTION_FROM_ENVIRONMENT 0u
#define LLCL_EXECUTION_AUTO 1u
#define LLCL_EXECUTION_OFFLOAD 2u
#define LLCL_EXECUTION_DIRECT 3u
typedef struct llcl_config {
    uint64_t struct_size;     /* set by llcl_config_default */
    llcl_world_t *world;      /* NULL: from the environment (llcl-run), else a world inside this process */
    uint32_t rank;            /* rank within `world`; ignored when world is NULL */
    uint32_t execution;       /* LLCL_EXECUTION_*; 0: LLCL_EXECUTION, else auto */
    uint32_t queue_entries;   /* 0: LLCL_QUEUE_ENTRIES, else 1024; a power of two, 8..=65536 */
    uint32_t in_flight;       /* 0: LLCL_IN_FLIGHT, else 1024; multiple of 64, 64..=3904 */
    uint32_t regions;         /* 0: LLCL_REGIONS, else 1024; 1..=65535 at once */
    uint32_t reserved;        /* 0 */
} llcl_config_t;
llcl_status_t llcl_config_default(llcl_config_t *config);
llcl_status_t llcl_init(const llcl_config_t *config /* NULL: defaults */, llcl_context_t **context);
llcl_status_t llcl_finalize(llcl_context_t *context);   /* collective; completes or cancels what is under way; regions are freed */
void llcl_abort(llcl_context_t *context, int32_t exit_code); /* ends the whole job; does not return */
uint32_t llcl_rank(const llcl_context_t *context);
uint32_t llcl_size(const llcl_context_t *context);
#define LLCL_VERSION_MAJOR 0
#define LLCL_VERSION_MINOR 1
#define LLCL_VERSION_PATCH 0
uint32_t llcl_version(void);            /* major << 16 | minor << 8 | patch */
const char *llcl_version_string(void);  /* "0.1.0" */
llcl_status_t llcl_peer_alive(llcl_context_t *context, uint32_t peer); /* LLCL_OK or LLCL_ERR_PEER_DEAD */
typedef struct llcl_capabilities {
    uint64_t struct_size;    /* set by the caller before the call */
    uint32_t execution;      /* what is in force */
    uint32_t queue_entries;
    uint32_t in_flight;
    uint32_t regions;
    uint64_t small;          /* most bytes of llcl_try_write_small_async */
    uint64_t page;           /* granularity of allocated regions */
} llcl_capabilities_t;
llcl_status_t llcl_query(llcl_context_t *context, llcl_capabilities_t *capabilities);
#define LLCL_TRANSPORT_LOOPBACK 1u
#define LLCL_TRANSPORT_SHM 2u
#define LLCL_ACCESS_MAPPED 1u     /* loads and stores */
#define LLCL_ACCESS_KERNEL 2u     /* process_vm_readv, process_vm_writev */
#define LLCL_ACCESS_MESSAGE 3u    /* executed by the owner's progress thread */
typedef struct llcl_peer_info {
    uint64_t struct_size;
    uint32_t transport;
    uint32_t registered_access;   /* how registered memory of that peer is read and written */
    uint32_t process;             /* its process id */
    uint32_t reserved;
} llcl_peer_info_t;
llcl_status_t llcl_query_peer(llcl_context_t *context, uint32_t peer, llcl_peer_info_t *info);
/* a world of `size` ranks inside this process: ranks as threads */
llcl_status_t llcl_world_create(uint32_t size, llcl_world_t **world);
llcl_status_t llcl_world_free(llcl_world_t *world); /* after every rank's llcl_finalize, else LLCL_RETRY_BUSY */

/* ---- 2 memory ---- */
typedef struct llcl_remote { uint64_t offset; uint64_t key; } llcl_remote_t;  /* plain bytes, valid in every rank */
typedef struct llcl_local { uint64_t offset; uint64_t key; } llcl_local_t;    /* valid in the context that made it */
llcl_status_t llcl_region_allocate(llcl_context_t *context, size_t size, uint32_t flags /* 0 */, llcl_region_t **region);
llcl_status_t llcl_region_register(llcl_context_t *context, void *address, size_t size, uint32_t flags /* 0 */, llcl_region_t **region);
llcl_status_t llcl_region_free(llcl_region_t *region);  /* LLCL_RETRY_BUSY while accepted operations use it as their local side */
void *llcl_region_address(const llcl_region_t *region); /* NULL for NULL */
size_t llcl_region_size(const llcl_region_t *region);
llcl_local_t llcl_region_local(const llcl_region_t *region, uint64_t offset);
llcl_remote_t llcl_region_remote(const llcl_region_t *region, uint64_t offset);
llcl_status_t llcl_exchange(llcl_context_t *context, const void *mine, size_t size, void *all); /* all-gather of size() * size bytes; collective; size 0 is a fence */
void *llcl_remote_pointer(llcl_context_t *context, uint32_t peer, llcl_remote_t remote, size_t size); /* NULL where not mapped (see llcl_last_error) */

/* ---- 3 RMA ---- */
#define LLCL_FLAG_DEFER 1u   /* through the lane, whatever the mode; the completion never fires inside the call */
typedef struct llcl_read_params {
    uint32_t peer; uint32_t flags;
    llcl_remote_t source; llcl_local_t destination;
    size_t size;
    llcl_completion_t on_complete;
} llcl_read_params_t;
typedef struct llcl_write_params {
    uint32_t peer; uint32_t flags;
    llcl_local_t source; llcl_remote_t destination;
    size_t size;
    llcl_completion_t on_local; llcl_completion_t on_complete;
} llcl_write_params_t;
typedef struct llcl_write_value_params {
    uint32_t peer; uint32_t flags;
    llcl_remote_t destination;
    uint64_t value; size_t size;      /* 1..8 low-order bytes, in memory order of the host */
    llcl_completion_t on_complete;
} llcl_write_value_params_t;
typedef struct llcl_write_small_params {
    uint32_t peer; uint32_t flags;
    const void *source;               /* any memory; reusable when the call returns */
    llcl_remote_t destination;
    size_t size;                      /* at most capabilities.small */
    llcl_completion_t on_complete;
} llcl_write_small_params_t;
#define LLCL_SIGNAL_SET 1u
#define LLCL_SIGNAL_ADD 2u
typedef struct llcl_write_signal_params {
    uint32_t peer; uint32_t flags;
    llcl_local_t source; llcl_remote_t destination;
    size_t size;
    llcl_remote_t signal;             /* an 8-byte aligned uint64_t in a region of the same peer */
    uint64_t signal_value; uint32_t signal_op; uint32_t reserved;
    llcl_completion_t on_local; llcl_completion_t on_complete;
} llcl_write_signal_params_t;
/* ---- 4 atomics ---- */
#define LLCL_TYPE_I32 1u
#define LLCL_TYPE_U32 2u
#define LLCL_TYPE_I64 3u
#define LLCL_TYPE_U64 4u
#define LLCL_TYPE_F32 5u
#define LLCL_TYPE_F64 6u
#define LLCL_OP_LOAD 1u
#define LLCL_OP_STORE 2u
#define LLCL_OP_SWAP 3u
#define LLCL_OP_COMPARE_SWAP 4u
#define LLCL_OP_ADD 5u
#define LLCL_OP_SUB 6u
#define LLCL_OP_AND 7u
#define LLCL_OP_OR 8u
#define LLCL_OP_XOR 9u
#define LLCL_OP_MIN 10u
#define LLCL_OP_MAX 11u
typedef struct llcl_atomic_params {
    uint32_t peer; uint32_t flags;
    llcl_remote_t target;             /* aligned to the type's size */
    uint32_t op; uint32_t type;
    uint64_t operand;                 /* the value's bytes in the low-order part (4 or 8), floats as their bits */
    uint64_t compare;                 /* for LLCL_OP_COMPARE_SWAP; compared as bits, floats too */
    void *result;                     /* NULL: not fetched; else 4 or 8 bytes of any memory of the caller, aligned to the type, written before on_complete */
    llcl_completion_t on_complete;
} llcl_atomic_params_t;               /* LLCL_OP_LOAD needs a result */
typedef struct llcl_fetch_add_params {       /* uint64_t */
    uint32_t peer; uint32_t flags;
    llcl_remote_t target; uint64_t operand; uint64_t *result;
    llcl_completion_t on_complete;
} llcl_fetch_add_params_t;
typedef struct llcl_compare_swap_params {    /* uint64_t */
    uint32_t peer; uint32_t flags;
    llcl_remote_t target; uint64_t compare; uint64_t desired; uint64_t *result;
    llcl_completion_t on_complete;
} llcl_compare_swap_params_t;
#define LLCL_DOMAIN_PROCESSOR 1u  /* lock-prefixed instructions of whichever processor asks */
#define LLCL_DOMAIN_OWNER 2u      /* only the owner's process touches the word */
typedef struct llcl_atomic_info { uint64_t struct_size; uint32_t supported; uint32_t domain; uint32_t native; uint32_t reserved; } llcl_atomic_info_t;
/* supported 0/1; native 1: executed by the calling processor, 0: by a message to the owner */
llcl_status_t llcl_atomic_query(llcl_context_t *context, uint32_t peer, llcl_remote_t target, uint32_t op, uint32_t type, llcl_atomic_info_t *info);

/* ---- 5 three tiers: try (may answer "try again"), async (tries until accepted), blocking (on_complete and on_local must be none) ---- */
#define LLCL_TIERS_(name, params) \
    llcl_status_t llcl_try_##name##_async(llcl_context_t *context, const params *p); \
    llcl_status_t llcl_##name##_async(llcl_context_t *context, const params *p); \
    llcl_status_t llcl_##name(llcl_context_t *context, const params *p);
LLCL_TIERS_(read, llcl_read_params_t)
LLCL_TIERS_(write, llcl_write_params_t)
LLCL_TIERS_(write_value, llcl_write_value_params_t)
LLCL_TIERS_(write_small, llcl_write_small_params_t)
LLCL_TIERS_(write_signal, llcl_write_signal_params_t)
LLCL_TIERS_(atomic, llcl_atomic_params_t)
LLCL_TIERS_(fetch_add, llcl_fetch_add_params_t)
LLCL_TIERS_(compare_swap, llcl_compare_swap_params_t)
/* Zero size: addresses are checked, nothing is touched, completes with LLCL_OK. Overlap of source and destination: as memmove.
   Inside a callback the async and blocking tiers, llcl_flush*, llcl_wait_word, llcl_exchange, llcl_finalize answer LLCL_ERR_STATE. */
llcl_status_t llcl_flush(llcl_context_t *context, uint32_t peer); /* everything accepted before has completed; LLCL_ERR_PEER_DEAD when the peer is dead */
llcl_status_t llcl_flush_all(llcl_context_t *context);
/* Waits until *word >= at_least (unsigned, acquire). word: any memory of this process, 8-byte aligned. timeout_ns < 0: for ever; 0: a test. */
llcl_status_t llcl_wait_word(llcl_context_t *context, const uint64_t *word, uint64_t at_least, int64_t timeout_ns);
llcl_status_t llcl_progress(llcl_context_t *context); /* one round; never needed */

#ifdef __cplusplus
}
#endif
#endif
