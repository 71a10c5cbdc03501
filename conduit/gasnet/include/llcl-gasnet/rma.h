/* Puts and gets of GASNet-EX, inlined. Included by gasnetex.h, inside its extern "C".
 *
 * Each rank maps the segments that libllcl has allocated at ranks of its node, so an access to
 * them is a copy by the caller. gexl_put and gexl_get do all others: to other nodes, to a
 * client's own memory, of 0 bytes, and to addresses outside of a segment. An access by the
 * caller is done when its call returns, so its event is GEX_EVENT_INVALID. The NB and NBI forms of
 * all other accesses may still be under way when their call returns. */
#include <string.h>

static inline const struct gexl_place *gexl_places(gex_TM_t tm) {
    return (const struct gexl_place *)(const void *)(tm + 1);
}

/* Whether this process maps the bytes at a rank, and their address here. For a constant size of up
 * to 8 bytes the check of the address is one comparison. */
static inline int gexl_inside(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size, unsigned char **here) {
    if (GASNETT_PREDICT_TRUE(rank < tm->size)) {
        const struct gexl_place *place = &gexl_places(tm)[rank];
        uintptr_t offset = (uintptr_t)address - place->base;
        *here = (unsigned char *)((uintptr_t)address + place->at.delta - GEXL_MAPPED);
        return __builtin_constant_p(size) && size <= 8 ? offset < place->words
                                                       : offset <= place->size && size <= place->size - offset;
    }
    return 0;
}

/* The same, for inlined calls. A client that is compiled with NDEBUG promises that its ranks and
 * addresses are right, so all that is left to ask is whether this process maps the segment. */
static inline int gexl_mapped(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size, unsigned char **here) {
#if defined(NDEBUG)
    const struct gexl_place *place = &gexl_places(tm)[rank];
    (void)size;
    *here = (unsigned char *)((uintptr_t)address + place->at.delta - GEXL_MAPPED);
    return place->at.delta & GEXL_MAPPED;
#else
    return gexl_inside(tm, rank, address, size, here);
#endif
}

/* Reads bytes that another rank may be writing. A constant size that a register holds is one
 * volatile load, which the compiler keeps in order with the client's other calls; x86-64 keeps the
 * order of loads itself. So a loop of such gets may keep the team and its places in registers. The
 * client's own loads need gasnett_local_rmb(), as GASNet's specification says. */
typedef uint64_t gexl_word __attribute__((may_alias, aligned(1)));
typedef uint32_t gexl_half __attribute__((may_alias, aligned(1)));
static inline void gexl_read(void *to, const unsigned char *from, size_t size) {
#if defined(__x86_64__)
    if (__builtin_constant_p(size) && size == sizeof(gexl_word)) {
        *(gexl_word *)to = *(const volatile gexl_word *)from;
        return;
    }
    if (__builtin_constant_p(size) && size == sizeof(gexl_half)) {
        *(gexl_half *)to = *(const volatile gexl_half *)from;
        return;
    }
#endif
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    memcpy(to, from, size);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* Accesses to memory that is not mapped here. They end the job if the bytes are in no segment. */
void gexl_put(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size);
void gexl_get(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size);
gex_Event_t gexl_put_nb(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size,
                        gex_Event_t *lc, gex_Flags_t flags);
gex_Event_t gexl_get_nb(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size,
                        gex_Flags_t flags);
int gexl_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size, gex_Event_t *lc,
                 gex_Flags_t flags);
int gexl_get_nbi(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size, gex_Flags_t flags);
void gexl_set(gex_TM_t tm, gex_Rank_t rank, void *destination, int value, size_t size);

/* Local completion is immediate: if `lc` is the address of an event, that event has happened. */
static inline void gexl_ended(gex_Event_t *lc) {
    if ((uintptr_t)lc > (uintptr_t)GEX_EVENT_GROUP) {
        *lc = GEX_EVENT_INVALID;
    }
}

static inline void gexl_store(void *to, const void *source, size_t size) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(to, source, size);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source,
                                      size_t size, gex_Flags_t flags) {
    unsigned char *to;
    (void)flags;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, destination, size, &to))) {
        gexl_store(to, source, size);
    } else {
        gexl_put(tm, rank, destination, source, size);
    }
    return 0;
}
static inline int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size,
                                 gex_Event_t *lc, gex_Flags_t flags) {
    unsigned char *to;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, destination, size, &to))) {
        gexl_store(to, source, size);
        return 0;
    }
    return gexl_put_nbi(tm, rank, destination, source, size, lc, flags);
}
static inline gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source,
                                        size_t size, gex_Event_t *lc, gex_Flags_t flags) {
    unsigned char *to;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, destination, size, &to))) {
        gexl_store(to, source, size);
        gexl_ended(lc);
        return GEX_EVENT_INVALID;
    }
    return gexl_put_nb(tm, rank, destination, source, size, lc, flags);
}
static inline int gex_RMA_GetBlocking(gex_TM_t tm, void *destination, gex_Rank_t rank, void *source, size_t size,
                                      gex_Flags_t flags) {
    unsigned char *from;
    (void)flags;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, source, size, &from))) {
        gexl_read(destination, from, size);
    } else {
        gexl_get(tm, destination, rank, source, size);
    }
    return 0;
}
static inline int gex_RMA_GetNBI(gex_TM_t tm, void *destination, gex_Rank_t rank, void *source, size_t size,
                                 gex_Flags_t flags) {
    unsigned char *from;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, source, size, &from))) {
        gexl_read(destination, from, size);
        return 0;
    }
    return gexl_get_nbi(tm, destination, rank, source, size, flags);
}
static inline gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *destination, gex_Rank_t rank, void *source, size_t size,
                                        gex_Flags_t flags) {
    unsigned char *from;
    if (GASNETT_PREDICT_TRUE(gexl_mapped(tm, rank, source, size, &from))) {
        gexl_read(destination, from, size);
        return GEX_EVENT_INVALID;
    }
    return gexl_get_nb(tm, destination, rank, source, size, flags);
}

/* A value's low-order bytes travel. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error values of fewer than 8 bytes begin elsewhere on a big-endian machine
#endif
static inline int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *destination, gex_RMA_Value_t value,
                                         size_t size, gex_Flags_t flags) {
    return gex_RMA_PutBlocking(tm, rank, destination, &value, size, flags);
}
static inline int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *destination, gex_RMA_Value_t value,
                                    size_t size, gex_Flags_t flags) {
    return gex_RMA_PutNBI(tm, rank, destination, &value, size, GEX_EVENT_NOW, flags);
}
static inline gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *destination, gex_RMA_Value_t value,
                                           size_t size, gex_Flags_t flags) {
    return gex_RMA_PutNB(tm, rank, destination, &value, size, GEX_EVENT_NOW, flags);
}
static inline gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *source, size_t size,
                                                     gex_Flags_t flags) {
    gex_RMA_Value_t value = 0;
    gex_RMA_GetBlocking(tm, &value, rank, source, size, flags);
    return value;
}

/* Events. A test does not poll; a wait does. */
int gexl_event_test(gex_Event_t event);
void gexl_event_wait(gex_Event_t event);
int gex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
void gex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags);
int gex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
void gex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags);
static inline int gex_Event_Test(gex_Event_t event) {
    return event ? gexl_event_test(event) : GASNET_OK;
}
static inline void gex_Event_Wait(gex_Event_t event) {
    if (event) {
        gexl_event_wait(event);
    } else {
        gasnet_AMPoll();
    }
}
gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category);
int gex_NBI_Test(gex_EC_t mask, gex_Flags_t flags);
void gex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags);
/* A nested access region ends the job. */
void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags);
