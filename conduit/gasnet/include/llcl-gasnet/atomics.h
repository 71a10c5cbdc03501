/* Atomics of the tools. Included by gasnet_tools.h.
 *
 * An operation whose flags ask for any fence is sequentially consistent, which is never weaker than
 * those fences. Others are relaxed. */
#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_RMB_PRE 1
#define GASNETT_ATOMIC_WMB_PRE 2
#define GASNETT_ATOMIC_MB_PRE 3
#define GASNETT_ATOMIC_RMB_POST 4
#define GASNETT_ATOMIC_WMB_POST 8
#define GASNETT_ATOMIC_MB_POST 12
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE 16
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 32
#define GASNETT_ATOMIC_REL GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_ACQ GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE GASNETT_ATOMIC_RMB_POST_IF_FALSE
#define GASNETT_HAVE_ATOMIC_ADD_SUB 1
#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1
#define GASNETT_HAVE_STRONGATOMIC_CAS 1

/* The strong forms: as if a fence stood on each side. */
static inline void gexl_fence(int flags) {
    if (flags) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

#define GEXL_NUMBER(name, value)                                                                           \
    static inline void name##_set(name##_t *p, value v, int flags) {                                       \
        gexl_fence(flags);                                                                                 \
        __atomic_store_n(&p->number, v, __ATOMIC_RELAXED);                                                 \
        gexl_fence(flags &GASNETT_ATOMIC_MB_POST);                                                         \
    }                                                                                                      \
    static inline value name##_read(name##_t *p, int flags) {                                              \
        value v;                                                                                           \
        gexl_fence(flags &GASNETT_ATOMIC_MB_PRE);                                                          \
        v = __atomic_load_n(&p->number, __ATOMIC_RELAXED);                                                 \
        gexl_fence(flags &GASNETT_ATOMIC_WMB_POST);                                                        \
        if (flags) {                                                                                       \
            __atomic_thread_fence(__ATOMIC_ACQUIRE);                                                       \
        }                                                                                                  \
        return v;                                                                                          \
    }                                                                                                      \
    static inline value name##_add(name##_t *p, value v, int flags) {                                      \
        return flags ? __atomic_add_fetch(&p->number, v, __ATOMIC_SEQ_CST)                                 \
                     : __atomic_add_fetch(&p->number, v, __ATOMIC_RELAXED);                                \
    }                                                                                                      \
    static inline value name##_subtract(name##_t *p, value v, int flags) {                                 \
        return flags ? __atomic_sub_fetch(&p->number, v, __ATOMIC_SEQ_CST)                                 \
                     : __atomic_sub_fetch(&p->number, v, __ATOMIC_RELAXED);                                \
    }                                                                                                      \
    static inline void name##_increment(name##_t *p, int flags) { name##_add(p, 1, flags); }               \
    static inline void name##_decrement(name##_t *p, int flags) { name##_subtract(p, 1, flags); }          \
    static inline int name##_decrement_and_test(name##_t *p, int flags) {                                  \
        return name##_subtract(p, 1, flags) == 0;                                                          \
    }                                                                                                      \
    static inline int name##_compare_and_swap(name##_t *p, value from, value to, int flags) {              \
        (void)flags;                                                                                       \
        return __atomic_compare_exchange_n(&p->number, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    }                                                                                                      \
    static inline value name##_swap(name##_t *p, value v, int flags) {                                     \
        (void)flags;                                                                                       \
        return __atomic_exchange_n(&p->number, v, __ATOMIC_SEQ_CST);                                       \
    }

typedef struct {
    uint32_t number;
} gasnett_atomic32_t;
typedef struct {
    uint64_t number;
} gasnett_atomic64_t;
#define gasnett_atomic32_init(v) {(uint32_t)(v)}
#define gasnett_atomic64_init(v) {(uint64_t)(v)}
GEXL_NUMBER(gasnett_atomic32, uint32_t)
GEXL_NUMBER(gasnett_atomic64, uint64_t)

/* gasnett_atomic_t has 32 bits. The strong types are the plain ones. */
typedef gasnett_atomic32_t gasnett_atomic_t;
typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define gasnett_atomic_init(v) gasnett_atomic32_init(v)
#define gasnett_atomic_signed(v) ((gasnett_atomic_sval_t)(v))
#define GASNETT_ATOMIC_MAX ((gasnett_atomic_val_t)0xffffffffu)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)INT32_MIN)
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)INT32_MAX)
#define gasnett_atomic_set gasnett_atomic32_set
#define gasnett_atomic_read gasnett_atomic32_read
#define gasnett_atomic_add gasnett_atomic32_add
#define gasnett_atomic_subtract gasnett_atomic32_subtract
#define gasnett_atomic_increment gasnett_atomic32_increment
#define gasnett_atomic_decrement gasnett_atomic32_decrement
#define gasnett_atomic_decrement_and_test gasnett_atomic32_decrement_and_test
#define gasnett_atomic_compare_and_swap gasnett_atomic32_compare_and_swap
#define gasnett_atomic_swap gasnett_atomic32_swap

typedef gasnett_atomic32_t gasnett_strongatomic_t;
typedef gasnett_atomic32_t gasnett_strongatomic32_t;
typedef gasnett_atomic64_t gasnett_strongatomic64_t;
typedef gasnett_atomic_val_t gasnett_strongatomic_val_t;
typedef gasnett_atomic_sval_t gasnett_strongatomic_sval_t;
#define gasnett_strongatomic_init(v) gasnett_atomic32_init(v)
#define gasnett_strongatomic_signed(v) gasnett_atomic_signed(v)
#define GASNETT_STRONGATOMIC_MAX GASNETT_ATOMIC_MAX
#define GASNETT_STRONGATOMIC_SIGNED_MIN GASNETT_ATOMIC_SIGNED_MIN
#define GASNETT_STRONGATOMIC_SIGNED_MAX GASNETT_ATOMIC_SIGNED_MAX
#define gasnett_strongatomic_set gasnett_atomic32_set
#define gasnett_strongatomic_read gasnett_atomic32_read
#define gasnett_strongatomic_add gasnett_atomic32_add
#define gasnett_strongatomic_subtract gasnett_atomic32_subtract
#define gasnett_strongatomic_increment gasnett_atomic32_increment
#define gasnett_strongatomic_decrement gasnett_atomic32_decrement
#define gasnett_strongatomic_decrement_and_test gasnett_atomic32_decrement_and_test
#define gasnett_strongatomic_compare_and_swap gasnett_atomic32_compare_and_swap
#define gasnett_strongatomic_swap gasnett_atomic32_swap
#define gasnett_strongatomic32_init(v) gasnett_atomic32_init(v)
#define gasnett_strongatomic32_set gasnett_atomic32_set
#define gasnett_strongatomic32_read gasnett_atomic32_read
#define gasnett_strongatomic32_add gasnett_atomic32_add
#define gasnett_strongatomic32_subtract gasnett_atomic32_subtract
#define gasnett_strongatomic32_increment gasnett_atomic32_increment
#define gasnett_strongatomic32_decrement gasnett_atomic32_decrement
#define gasnett_strongatomic32_decrement_and_test gasnett_atomic32_decrement_and_test
#define gasnett_strongatomic32_compare_and_swap gasnett_atomic32_compare_and_swap
#define gasnett_strongatomic32_swap gasnett_atomic32_swap
#define gasnett_strongatomic64_init(v) gasnett_atomic64_init(v)
#define gasnett_strongatomic64_set gasnett_atomic64_set
#define gasnett_strongatomic64_read gasnett_atomic64_read
#define gasnett_strongatomic64_add gasnett_atomic64_add
#define gasnett_strongatomic64_subtract gasnett_atomic64_subtract
#define gasnett_strongatomic64_increment gasnett_atomic64_increment
#define gasnett_strongatomic64_decrement gasnett_atomic64_decrement
#define gasnett_strongatomic64_decrement_and_test gasnett_atomic64_decrement_and_test
#define gasnett_strongatomic64_compare_and_swap gasnett_atomic64_compare_and_swap
#define gasnett_strongatomic64_swap gasnett_atomic64_swap
