/* Is what a client must not do told with a sentence, and the job ended? The first argument says which misuse;
 * tests/run looks for the sentence. Without one, errors that are codes are looked at. */
#include "t.h"

static const char *how;
static void reply(gex_Token_t token) {
    if (!strcmp(how, "reply to a reply")) {
        gex_AM_ReplyShort0(token, 201, 0);
    }
}
static void request(gex_Token_t token) {
    if (!strcmp(how, "request in a handler")) {
        gex_AM_RequestShort0(tm, 0, 200, 0);
    }
    gex_AM_ReplyShort0(token, 201, 0);
    if (!strcmp(how, "two replies")) {
        gex_AM_ReplyShort0(token, 201, 0);
    }
}

static void codes(gex_AM_Entry_t *table) {
    gex_Segment_t other;
    gex_MK_t kind;
    gex_EP_t second;
    gex_System_SetVerboseErrors(0);
    EQUAL(gex_EP_RegisterHandlers(ep, table, 1), GASNET_ERR_BAD_ARG);
    EQUAL(gex_Segment_Attach(&other, tm, SEGMENT), GASNET_ERR_RESOURCE);
    EQUAL(gex_MK_Create(&kind, client, NULL, 0), GASNET_ERR_RESOURCE);
    EQUAL(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_ALL, 0), GASNET_ERR_RESOURCE);
    EQUAL(gasnet_set_waitmode(99), GASNET_ERR_BAD_ARG);
    CHECK(!strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY"));
    end();
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    static char bytes[100000];
    how = argc > 1 ? argv[1] : "";
    begin(table, 2);
    if (!*how) {
        codes(table);
    } else if (me == 0 && !strcmp(how, "no handler")) {
        gex_AM_RequestShort0(tm, all - 1, 222, 0);
    } else if (me == 0 && !strcmp(how, "wrong arguments")) {
        gex_AM_RequestShort1(tm, all - 1, 200, 0, 1);
    } else if (me == 0 && !strcmp(how, "too large")) {
        gex_AM_RequestMedium0(tm, all - 1, 200, bytes, sizeof bytes, GEX_EVENT_NOW, 0);
    } else if (me == 0 && !strcmp(how, "outside")) {
        gex_RMA_PutBlocking(tm, all - 1, base_of(all - 1) + SEGMENT - 1, bytes, 2, 0);
    } else if (me == 0 && !strcmp(how, "no such rank")) {
        gex_RMA_PutBlocking(tm, all, base_of(0), bytes, 2, 0);
    } else if (me == 0) {
        gex_AM_RequestShort0(tm, all - 1, 200, 0);
    }
    for (;;) {
        gasnet_AMPoll();
    }
}
