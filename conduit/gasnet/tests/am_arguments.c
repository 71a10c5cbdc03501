/* Do requests and replies of all kinds carry 0 to 16 arguments and their payload? */
#include "t.h"

#define HANDLERS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) \
    DO(14) DO(15) DO(16)
static volatile int replies;
static void check_args(int n, const gex_AM_Arg_t *args) {
    for (int i = 0; i < n; i++) {
        EQUAL(args[i], -100 * n - i);
    }
}
static void check_bytes(const char *bytes, size_t size, int n) {
    EQUAL(size, n + 5);
    for (size_t i = 0; i < size; i++) {
        EQUAL(bytes[i], (char)(n + i));
    }
}
/* The handler of a request sends a reply of the same kind, with as many arguments. */
#define DEFINE(n)                                                                                          \
    static void short_reply##n(gex_Token_t token GEXL_P##n) {                                              \
        GEXL_ARGS(n);                                                                                      \
        (void)token;                                                                                       \
        check_args(n, args + 1);                                                                           \
        replies++;                                                                                         \
    }                                                                                                      \
    static void data_reply##n(gex_Token_t token, void *data, size_t size GEXL_P##n) {                      \
        GEXL_ARGS(n);                                                                                      \
        gex_Token_Info_t info;                                                                             \
        CHECK((gex_Token_Info(token, &info, GEX_TI_ALL) & GEX_TI_IS_REQ) && !info.gex_is_req);             \
        check_args(n, args + 1);                                                                           \
        check_bytes(data, size, n);                                                                        \
        replies++;                                                                                         \
    }                                                                                                      \
    static void short_request##n(gex_Token_t token GEXL_P##n) {                                            \
        GEXL_ARGS(n);                                                                                      \
        check_args(n, args + 1);                                                                           \
        gex_AM_ReplyShort##n(token, 80 + n, 0 GEXL_A##n);                                                  \
    }                                                                                                      \
    static void medium_request##n(gex_Token_t token, void *data, size_t size GEXL_P##n) {                  \
        GEXL_ARGS(n);                                                                                      \
        check_args(n, args + 1);                                                                           \
        check_bytes(data, size, n);                                                                        \
        gex_AM_ReplyMedium##n(token, 120 + n, data, size, GEX_EVENT_NOW, 0 GEXL_A##n);                     \
    }                                                                                                      \
    static void long_request##n(gex_Token_t token, void *data, size_t size GEXL_P##n) {                    \
        GEXL_ARGS(n);                                                                                      \
        gasnet_node_t source;                                                                              \
        check_args(n, args + 1);                                                                           \
        check_bytes(data, size, n);                                                                        \
        CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK);                                         \
        EQUAL((char *)data - base_of(me), 1000 * source);                                                      \
        gex_AM_ReplyLong##n(token, 120 + n, data, size, base_of(source) + 100000, GEX_EVENT_NOW,           \
                            0 GEXL_A##n);                                                                  \
    }                                                                                                      \
    static void send##n(unsigned to, char *bytes GEXL_P##n) {                                              \
        gex_AM_RequestShort##n(tm, to, 100 + n, 0 GEXL_A##n);                                              \
        GASNET_BLOCKUNTIL(replies == 1);                                                                   \
        gex_AM_RequestMedium##n(tm, to, 140 + n, bytes, n + 5, GEX_EVENT_NOW, 0 GEXL_A##n);                \
        GASNET_BLOCKUNTIL(replies == 2);                                                                   \
        gex_AM_RequestLong##n(tm, to, 160 + n, bytes, n + 5, base_of(to) + 1000 * me, GEX_EVENT_NOW,       \
                              0 GEXL_A##n);                                                                \
        GASNET_BLOCKUNTIL(replies == 3);                                                                   \
        gasnet_AMRequestShort##n(to, 100 + n GEXL_A##n);                                                   \
        gasnet_AMRequestMedium##n(to, 140 + n, bytes, n + 5 GEXL_A##n);                                    \
        GASNET_BLOCKUNTIL(replies == 5);                                                                   \
        gasnet_AMRequestLongAsync##n(to, 160 + n, bytes, n + 5, base_of(to) + 1000 * me GEXL_A##n);        \
        GASNET_BLOCKUNTIL(replies == 6);                                                                   \
        replies = 0;                                                                                       \
    }
HANDLERS(DEFINE)

static gex_AM_Entry_t table[17 * 5];
#define ENTER(n)                                                                                              \
    table[5 * n + 0] = (gex_AM_Entry_t){80 + n, (gex_AM_Fn_t)short_reply##n,                                  \
                                        GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, n, NULL, NULL};                \
    table[5 * n + 1] = (gex_AM_Entry_t){120 + n, (gex_AM_Fn_t)data_reply##n,                                  \
                                        GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, n, NULL, NULL};              \
    table[5 * n + 2] = (gex_AM_Entry_t){100 + n, (gex_AM_Fn_t)short_request##n,                               \
                                        GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, n, NULL, NULL};              \
    table[5 * n + 3] = (gex_AM_Entry_t){140 + n, (gex_AM_Fn_t)medium_request##n,                              \
                                        GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, n, NULL, NULL};             \
    table[5 * n + 4] = (gex_AM_Entry_t){160 + n, (gex_AM_Fn_t)long_request##n,                                \
                                        GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, n, NULL, NULL};
#define SEND(n)                                                                  \
    for (int i = 0; i < 16; i++) {                                               \
        a[i] = -100 * n - i;                                                     \
    }                                                                            \
    for (int i = 0; i < n + 5; i++) {                                            \
        bytes[i] = (char)(n + i);                                                \
    }                                                                            \
    for (unsigned to = 0; to < all; to++) {                                      \
        send##n(to, bytes GIVE##n);                                              \
    }
#define GIVE0
#define GIVE1 , a[0]
#define GIVE2 GIVE1, a[1]
#define GIVE3 GIVE2, a[2]
#define GIVE4 GIVE3, a[3]
#define GIVE5 GIVE4, a[4]
#define GIVE6 GIVE5, a[5]
#define GIVE7 GIVE6, a[6]
#define GIVE8 GIVE7, a[7]
#define GIVE9 GIVE8, a[8]
#define GIVE10 GIVE9, a[9]
#define GIVE11 GIVE10, a[10]
#define GIVE12 GIVE11, a[11]
#define GIVE13 GIVE12, a[12]
#define GIVE14 GIVE13, a[13]
#define GIVE15 GIVE14, a[14]
#define GIVE16 GIVE15, a[15]

int main(void) {
    gex_AM_Arg_t a[16];
    char bytes[21];
    HANDLERS(ENTER)
    begin(table, 17 * 5);
    HANDLERS(SEND)
    /* A call without a number in its name counts its arguments. */
    gex_AM_RequestShort(tm, me, 102, 0, -200, -201);
    gasnet_AMRequestShort(me, 100);
    /* The handler of a message to oneself runs without a poll. */
    EQUAL(replies, 2);
    end();
}
