/* Active messages of GASNet-EX. Included by gasnetex.h, inside its extern "C".
 *
 * A call has 0 to 16 arguments. The inlined functions put them into an array, which gexl_request,
 * gexl_reply or gexl_commit takes. */

unsigned int gex_AM_MaxArgs(void);
size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t peer, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t peer, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t peer, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t peer, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc, gex_Flags_t flags, unsigned n);
size_t gex_AM_LUBRequestLong(void);
size_t gex_AM_LUBReplyLong(void);
size_t gex_AM_LUBRequestMedium(void);
size_t gex_AM_LUBReplyMedium(void);
gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);

gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                             size_t most, gex_Event_t *lc, gex_Flags_t flags, unsigned n);
gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                           gex_Event_t *lc, gex_Flags_t flags, unsigned n);
gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                           size_t most, void *destination, gex_Event_t *lc, gex_Flags_t flags,
                                           unsigned n);
gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                         void *destination, gex_Event_t *lc, gex_Flags_t flags, unsigned n);
int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t source, gex_Flags_t flags);
int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t source, gex_Flags_t flags);
int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t source, gex_Flags_t flags);
int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t source, gex_Flags_t flags);
void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t source);
size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t source);

/* A message without its arguments. `args`: their number. */
struct gexl_message {
    gex_AM_Index_t handler;
    uint8_t kind; /* GEXL_SHORT, GEXL_MEDIUM, GEXL_LONG */
    uint8_t args;
    const void *source;
    size_t size;
    void *destination;
};
#define GEXL_SHORT 0
#define GEXL_MEDIUM 1
#define GEXL_LONG 2
int gexl_request(gex_TM_t tm, gex_Rank_t rank, const struct gexl_message *message, const gex_AM_Arg_t *args,
                 gex_Event_t *lc, gex_Flags_t flags);
int gexl_reply(gex_Token_t token, const struct gexl_message *message, const gex_AM_Arg_t *args, gex_Event_t *lc);
int gexl_commit(gex_AM_SrcDesc_t source, gex_AM_Index_t handler, size_t size, void *destination, gex_Flags_t flags,
                unsigned n, const gex_AM_Arg_t *args);

/* GEXL_Pn: the parameters for n arguments. GEXL_An: their values. */
#define GEXL_P0
#define GEXL_P1 , gex_AM_Arg_t a0
#define GEXL_P2 GEXL_P1, gex_AM_Arg_t a1
#define GEXL_P3 GEXL_P2, gex_AM_Arg_t a2
#define GEXL_P4 GEXL_P3, gex_AM_Arg_t a3
#define GEXL_P5 GEXL_P4, gex_AM_Arg_t a4
#define GEXL_P6 GEXL_P5, gex_AM_Arg_t a5
#define GEXL_P7 GEXL_P6, gex_AM_Arg_t a6
#define GEXL_P8 GEXL_P7, gex_AM_Arg_t a7
#define GEXL_P9 GEXL_P8, gex_AM_Arg_t a8
#define GEXL_P10 GEXL_P9, gex_AM_Arg_t a9
#define GEXL_P11 GEXL_P10, gex_AM_Arg_t a10
#define GEXL_P12 GEXL_P11, gex_AM_Arg_t a11
#define GEXL_P13 GEXL_P12, gex_AM_Arg_t a12
#define GEXL_P14 GEXL_P13, gex_AM_Arg_t a13
#define GEXL_P15 GEXL_P14, gex_AM_Arg_t a14
#define GEXL_P16 GEXL_P15, gex_AM_Arg_t a15
#define GEXL_A0
#define GEXL_A1 , a0
#define GEXL_A2 GEXL_A1, a1
#define GEXL_A3 GEXL_A2, a2
#define GEXL_A4 GEXL_A3, a3
#define GEXL_A5 GEXL_A4, a4
#define GEXL_A6 GEXL_A5, a5
#define GEXL_A7 GEXL_A6, a6
#define GEXL_A8 GEXL_A7, a7
#define GEXL_A9 GEXL_A8, a8
#define GEXL_A10 GEXL_A9, a9
#define GEXL_A11 GEXL_A10, a10
#define GEXL_A12 GEXL_A11, a11
#define GEXL_A13 GEXL_A12, a12
#define GEXL_A14 GEXL_A13, a13
#define GEXL_A15 GEXL_A14, a14
#define GEXL_A16 GEXL_A15, a15
#define GEXL_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) \
    DO(14) DO(15) DO(16)

/* C has no arrays of 0 elements, so the array begins with a dummy. */
#define GEXL_ARGS(n) const gex_AM_Arg_t args[n + 1] = {0 GEXL_A##n}
#define GEXL_SENDERS(n)                                                                                        \
    static inline int gex_AM_RequestShort##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,             \
                                             gex_Flags_t flags GEXL_P##n) {                                    \
        const struct gexl_message message = {handler, GEXL_SHORT, n, NULL, 0, NULL};                           \
        GEXL_ARGS(n);                                                                                          \
        return gexl_request(tm, rank, &message, args + 1, GEX_EVENT_NOW, flags);                               \
    }                                                                                                          \
    static inline int gex_AM_RequestMedium##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,            \
                                              const void *source, size_t size, gex_Event_t *lc,                \
                                              gex_Flags_t flags GEXL_P##n) {                                   \
        const struct gexl_message message = {handler, GEXL_MEDIUM, n, source, size, NULL};                     \
        GEXL_ARGS(n);                                                                                          \
        return gexl_request(tm, rank, &message, args + 1, lc, flags);                                          \
    }                                                                                                          \
    static inline int gex_AM_RequestLong##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,              \
                                            const void *source, size_t size, void *destination,                \
                                            gex_Event_t *lc, gex_Flags_t flags GEXL_P##n) {                    \
        const struct gexl_message message = {handler, GEXL_LONG, n, source, size, destination};                \
        GEXL_ARGS(n);                                                                                          \
        return gexl_request(tm, rank, &message, args + 1, lc, flags);                                          \
    }                                                                                                          \
    static inline int gex_AM_ReplyShort##n(gex_Token_t token, gex_AM_Index_t handler,                          \
                                           gex_Flags_t flags GEXL_P##n) {                                      \
        const struct gexl_message message = {handler, GEXL_SHORT, n, NULL, 0, NULL};                           \
        GEXL_ARGS(n);                                                                                          \
        (void)flags;                                                                                           \
        return gexl_reply(token, &message, args + 1, GEX_EVENT_NOW);                                           \
    }                                                                                                          \
    static inline int gex_AM_ReplyMedium##n(gex_Token_t token, gex_AM_Index_t handler, const void *source,     \
                                            size_t size, gex_Event_t *lc, gex_Flags_t flags GEXL_P##n) {       \
        const struct gexl_message message = {handler, GEXL_MEDIUM, n, source, size, NULL};                     \
        GEXL_ARGS(n);                                                                                          \
        (void)flags;                                                                                           \
        return gexl_reply(token, &message, args + 1, lc);                                                      \
    }                                                                                                          \
    static inline int gex_AM_ReplyLong##n(gex_Token_t token, gex_AM_Index_t handler, const void *source,       \
                                          size_t size, void *destination, gex_Event_t *lc,                     \
                                          gex_Flags_t flags GEXL_P##n) {                                       \
        const struct gexl_message message = {handler, GEXL_LONG, n, source, size, destination};                \
        GEXL_ARGS(n);                                                                                          \
        (void)flags;                                                                                           \
        return gexl_reply(token, &message, args + 1, lc);                                                      \
    }
/* The functions without _v2 pass no flags, so they are never refused. */
#define GEXL_COMMIT(name, n, destination, ...)                                                                 \
    static inline int gex_AM_Commit##name##n##_v2(__VA_ARGS__, gex_Flags_t flags GEXL_P##n) {                  \
        GEXL_ARGS(n);                                                                                          \
        return gexl_commit(source, handler, size, destination, flags, n, args + 1);                            \
    }                                                                                                          \
    static inline void gex_AM_Commit##name##n(__VA_ARGS__ GEXL_P##n) {                                         \
        GEXL_ARGS(n);                                                                                          \
        gexl_commit(source, handler, size, destination, 0, n, args + 1);                                       \
    }
#define GEXL_COMMIT_MEDIUM(name, n) \
    GEXL_COMMIT(name, n, NULL, gex_AM_SrcDesc_t source, gex_AM_Index_t handler, size_t size)
#define GEXL_COMMIT_LONG(name, n)                                                                              \
    GEXL_COMMIT(name, n, destination, gex_AM_SrcDesc_t source, gex_AM_Index_t handler, size_t size,            \
                void *destination)
#define GEXL_COMMITTERS(n)                                                                                     \
    GEXL_COMMIT_MEDIUM(RequestMedium, n)                                                                       \
    GEXL_COMMIT_MEDIUM(ReplyMedium, n)                                                                         \
    GEXL_COMMIT_LONG(RequestLong, n)                                                                           \
    GEXL_COMMIT_LONG(ReplyLong, n)
GEXL_EACH(GEXL_SENDERS)
GEXL_EACH(GEXL_COMMITTERS)

/* A call without a number in its name counts its arguments: GEXL_NF gives how many there are beyond
 * the F fixed ones. It passes 8 - F dummies in front, so that one macro serves every F. */
#define GEXL_25TH(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19, x20, \
                  x21, x22, x23, n, ...) n
#define GEXL_COUNT(...) \
    GEXL_25TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, ~)
#define GEXL_N2(...) GEXL_COUNT(~, ~, ~, ~, ~, ~, __VA_ARGS__)
#define GEXL_N3(...) GEXL_COUNT(~, ~, ~, ~, ~, __VA_ARGS__)
#define GEXL_N4(...) GEXL_COUNT(~, ~, ~, ~, __VA_ARGS__)
#define GEXL_N5(...) GEXL_COUNT(~, ~, ~, __VA_ARGS__)
#define GEXL_N6(...) GEXL_COUNT(~, ~, __VA_ARGS__)
#define GEXL_N7(...) GEXL_COUNT(~, __VA_ARGS__)
#define GEXL_N8(...) GEXL_COUNT(__VA_ARGS__)
#define GEXL_JOIN(name, n) GEXL_JOIN_(name, n)
#define GEXL_JOIN_(name, n) name##n
#define gex_AM_RequestShort(...) GEXL_JOIN(gex_AM_RequestShort, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestMedium(...) GEXL_JOIN(gex_AM_RequestMedium, GEXL_N7(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestLong(...) GEXL_JOIN(gex_AM_RequestLong, GEXL_N8(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyShort(...) GEXL_JOIN(gex_AM_ReplyShort, GEXL_N3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyMedium(...) GEXL_JOIN(gex_AM_ReplyMedium, GEXL_N6(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyLong(...) GEXL_JOIN(gex_AM_ReplyLong, GEXL_N7(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestMedium(...) GEXL_JOIN(gex_AM_CommitRequestMedium, GEXL_N3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium(...) GEXL_JOIN(gex_AM_CommitReplyMedium, GEXL_N3(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong(...) GEXL_JOIN(gex_AM_CommitRequestLong, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong(...) GEXL_JOIN(gex_AM_CommitReplyLong, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define GEXL_JOIN_V2(name, n) GEXL_JOIN_V2_(name, n)
#define GEXL_JOIN_V2_(name, n) name##n##_v2
#define gex_AM_CommitRequestMedium_v2(...) \
    GEXL_JOIN_V2(gex_AM_CommitRequestMedium, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...) GEXL_JOIN_V2(gex_AM_CommitReplyMedium, GEXL_N4(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...) GEXL_JOIN_V2(gex_AM_CommitRequestLong, GEXL_N5(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...) GEXL_JOIN_V2(gex_AM_CommitReplyLong, GEXL_N5(__VA_ARGS__))(__VA_ARGS__)
