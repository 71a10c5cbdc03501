/* Does every call of GASNet-1 work for a client that uses no GASNet-EX: initialisation, segments,
 * puts and gets in all forms with their syncs, vector, indexed and strided accesses, locks and
 * messages? */
#include "t.h"

#define SIZE 4096
static gasnet_seginfo_t segments[4];
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static volatile int answered, longs;

static void answer(gasnet_token_t token, gasnet_handlerarg_t value) {
    (void)token;
    answered += value;
}
static void answer_medium(gasnet_token_t token, void *data, size_t size) {
    (void)token;
    answered += size == 3 && !memcmp(data, "abc", 3) ? 10 : -1000;
}
static void answer_long(gasnet_token_t token, void *data, size_t size) {
    (void)token;
    longs += size == 3 && !memcmp(data, "abc", 3) && data == (char *)segments[gasnet_mynode()].addr + SIZE ? 1 : -1000;
}
static void ask(gasnet_token_t token, gasnet_handlerarg_t value) {
    gasnet_node_t source;
    EQUAL(gasnet_AMGetMsgSource(token, &source), GASNET_OK);
    EQUAL(source, ((unsigned)gasnet_mynode() + gasnet_nodes() - 1) % gasnet_nodes());
    gasnet_hsl_lock(&lock);
    CHECK(gasnet_AMReplyShort1(token, 221, value) == GASNET_OK);
    gasnet_hsl_unlock(&lock);
}
static void ask_medium(gasnet_token_t token, void *data, size_t size) {
    CHECK(gasnet_AMReplyMedium0(token, 223, data, size) == GASNET_OK);
}
static void ask_long(gasnet_token_t token, void *data, size_t size) {
    gasnet_node_t source;
    gasnet_AMGetMsgSource(token, &source);
    CHECK(gasnet_AMReplyLong0(token, 225, data, size, (char *)segments[source].addr + SIZE) == GASNET_OK);
}

/* Tries until it succeeds. */
#define UNTIL_OK(attempt)                                                                                  \
    for (int code; (code = (attempt)) != GASNET_OK;) {                                                     \
        EQUAL(code, GASNET_ERR_NOT_READY);                                                                 \
    }

/* After each write of `i` to all bytes of `at`, do all ways of reading return it? */
static void check_bytes(unsigned next, char *at, int i) {
    char copy[4][64];
    gasnet_get(copy[0], next, at, 64);
    gasnet_get_bulk(copy[1], next, at, 64);
    gasnet_handle_t handles[] = {gasnet_get_nb(copy[2], next, at, 64), gasnet_get_nb_bulk(copy[3], next, at, 64)};
    UNTIL_OK(gasnet_try_syncnb_some(handles, 2));
    UNTIL_OK(gasnet_try_syncnb_all(handles, 2));
    CHECK(handles[0] == GASNET_INVALID_HANDLE && handles[1] == GASNET_INVALID_HANDLE);
    gasnet_wait_syncnb_some(handles, 2);
    gasnet_wait_syncnb_all(handles, 2);
    for (int k = 0; k < 4 * 64; k++) {
        EQUAL(copy[k / 64][k % 64], i);
    }
    memset(copy, 0, sizeof copy);
    gasnet_get_nbi(copy[0], next, at, 64);
    gasnet_get_nbi_bulk(copy[1], next, at, 64);
    UNTIL_OK(gasnet_try_syncnbi_gets());
    gasnet_wait_syncnbi_gets();
    CHECK(copy[0][63] == i && copy[1][0] == i);
    EQUAL(gasnet_get_val(next, at + 1, 1), i);
    EQUAL(gasnet_wait_syncnb_valget(gasnet_get_nb_val(next, at + 62, 1)), i);
}

static void puts_and_gets(unsigned next, char *at) {
    char bytes[64];
    for (int i = 1; i <= 8; i++) {
        gasnet_handle_t handle = GASNET_INVALID_HANDLE;
        memset(bytes, i, 64);
        switch (i) {
            case 1: gasnet_put(next, at, bytes, 64); break;
            case 2: gasnet_put_bulk(next, at, bytes, 64); break;
            case 3: handle = gasnet_put_nb(next, at, bytes, 64); break;
            case 4: handle = gasnet_put_nb_bulk(next, at, bytes, 64); break;
            case 5: gasnet_put_nbi(next, at, bytes, 64); break;
            case 6: gasnet_put_nbi_bulk(next, at, bytes, 64); break;
            case 7: handle = gasnet_memset_nb(next, at, i, 64); break;
            default: gasnet_memset_nbi(next, at, i, 64);
        }
        if (i == 4) {
            gasnet_wait_syncnb(handle);
        } else {
            UNTIL_OK(gasnet_try_syncnb(handle));
        }
        UNTIL_OK(gasnet_try_syncnbi_puts());
        EQUAL(gasnet_try_syncnbi_all(), GASNET_OK);
        gasnet_wait_syncnbi_puts();
        check_bytes(next, at, i);
    }
    gasnet_begin_nbi_accessregion();
    for (int i = 0; i < 64; i += 8) {
        gasnet_put_nbi_val(next, at + i, 0x0909090909090909u, 8);
    }
    gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
    check_bytes(next, at, 9);
    gasnet_wait_syncnb(gasnet_put_nb_val(next, at, 0xa, 1));
    gasnet_put_val(next, at + 1, 0xb, 2);
    EQUAL(gasnet_get_val(next, at, 4), 0x09000b0a);
    gasnet_memset(next, at, 12, 64);
    gasnet_wait_syncnbi_all();
    check_bytes(next, at, 12);
}

/* Each form puts the 12 bytes of `from` with gaps and gets them back. */
static void with_gaps(unsigned next, char *at) {
    char from[] = "ABCDEFGHIJKL", to[13] = "";
    gasnet_memvec_t near_v[] = {{from, 12}}, back_v[] = {{to, 12}};
    gasnet_memvec_t far_v[] = {{at + 40, 5}, {at, 7}};
    void *near_i[] = {from}, *back_i[] = {to}, *far_i[] = {at + 8, at, at + 16};
    size_t far_s[] = {8}, near_s[] = {4}, count[] = {4, 3};
    for (int form = 0; form < 9; form++) {
        memset(to, 0, sizeof to);
        gasnet_memset(next, at, 0, 64);
        switch (form) {
            case 0: gasnet_putv_bulk(next, 2, far_v, 1, near_v); gasnet_getv_bulk(1, back_v, next, 2, far_v); break;
            case 1:
                gasnet_wait_syncnb(gasnet_putv_nb_bulk(next, 2, far_v, 1, near_v));
                gasnet_wait_syncnb(gasnet_getv_nb_bulk(1, back_v, next, 2, far_v));
                break;
            case 2:
                gasnet_putv_nbi_bulk(next, 2, far_v, 1, near_v);
                gasnet_wait_syncnbi_puts();
                gasnet_getv_nbi_bulk(1, back_v, next, 2, far_v);
                break;
            case 3:
                gasnet_puti_bulk(next, 3, far_i, 4, 1, near_i, 12);
                gasnet_geti_bulk(1, back_i, 12, next, 3, far_i, 4);
                break;
            case 4:
                gasnet_wait_syncnb(gasnet_puti_nb_bulk(next, 3, far_i, 4, 1, near_i, 12));
                gasnet_wait_syncnb(gasnet_geti_nb_bulk(1, back_i, 12, next, 3, far_i, 4));
                break;
            case 5:
                gasnet_puti_nbi_bulk(next, 3, far_i, 4, 1, near_i, 12);
                gasnet_wait_syncnbi_puts();
                gasnet_geti_nbi_bulk(1, back_i, 12, next, 3, far_i, 4);
                break;
            case 6:
                gasnet_puts_bulk(next, at, far_s, from, near_s, count, 1);
                gasnet_gets_bulk(to, near_s, next, at, far_s, count, 1);
                break;
            case 7:
                gasnet_wait_syncnb(gasnet_puts_nb_bulk(next, at, far_s, from, near_s, count, 1));
                gasnet_wait_syncnb(gasnet_gets_nb_bulk(to, near_s, next, at, far_s, count, 1));
                break;
            default:
                gasnet_puts_nbi_bulk(next, at, far_s, from, near_s, count, 1);
                gasnet_wait_syncnbi_puts();
                gasnet_gets_nbi_bulk(to, near_s, next, at, far_s, count, 1);
        }
        gasnet_wait_syncnbi_all();
        CHECK(!memcmp(to, from, 12));
        EQUAL(gasnet_get_val(next, at + (form < 3 ? 40 : form < 6 ? 8 : 0), 1), 'A');
        EQUAL(gasnet_get_val(next, at + 7, 1), 0);
    }
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{220, (void (*)())ask},        {221, (void (*)())answer},
                                     {222, (void (*)())ask_medium}, {223, (void (*)())answer_medium},
                                     {224, (void (*)())ask_long},   {225, (void (*)())answer_long}};
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    CHECK(gasnet_getMaxGlobalSegmentSize() >= 2 * SIZE);
    CHECK(gasnet_getMaxLocalSegmentSize() >= gasnet_getMaxGlobalSegmentSize());
    CHECK(gasnet_attach(table, 6, 4 * SIZE, 0) == GASNET_OK);
    CHECK(gasnet_nodes() <= 4 && gasnet_getSegmentInfo(segments, (int)gasnet_nodes()) == GASNET_OK);
    CHECK(gasnet_AMMaxArgs() == 16 && gasnet_AMMaxMedium() >= 512);
    CHECK(gasnet_AMMaxLongRequest() >= 512 && gasnet_AMMaxLongReply() >= 512);
    gasnet_QueryGexObjects(&client, &ep, &tm, &segment);
    EQUAL(gex_TM_QuerySize(tm), gasnet_nodes());
    CHECK(gex_EP_QuerySegment(ep) == segment && gex_TM_QueryEP(tm) == ep && gex_TM_QueryClient(tm) == client);
    CHECK(!strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY"));
    CHECK(strlen(gasnet_ErrorDesc(GASNET_ERR_NOT_READY)) > 0);
    setenv("GASNET_TEST_WORD", "a word", 1);
    CHECK(!strcmp(gasnet_getenv("GASNET_TEST_WORD"), "a word") && !gasnet_getenv("GASNET_TEST_NONE"));
    EQUAL(gasnet_barrier(3, 0), GASNET_OK);
    unsigned next = ((unsigned)gasnet_mynode() + 1) % gasnet_nodes();
    char *at = segments[next].addr;
    puts_and_gets(next, at);
    with_gaps(next, at);
    gasnet_hold_interrupts();
    gasnet_resume_interrupts();
    gasnet_hsl_t own;
    gasnet_hsl_init(&own);
    EQUAL(gasnet_hsl_trylock(&own), GASNET_OK);
    gasnet_hsl_unlock(&own);
    gasnet_hsl_destroy(&own);
    EQUAL(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), GASNET_OK);
    CHECK(gasnet_AMRequestShort1(next, 220, 7) == GASNET_OK);
    CHECK(gasnet_AMRequestMedium0(next, 222, "abc", 3) == GASNET_OK);
    GASNET_BLOCKUNTIL(answered == 17);
    CHECK(gasnet_AMRequestLong0(next, 224, "abc", 3, at) == GASNET_OK);
    GASNET_BLOCKUNTIL(longs == 1);
    CHECK(gasnet_AMRequestLongAsync0(next, 224, "abc", 3, at + 8) == GASNET_OK);
    GASNET_BLOCKUNTIL(longs == 2);
    EQUAL(gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS), GASNET_OK);
    gasnet_exit(0);
}
