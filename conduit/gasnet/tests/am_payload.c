/* Do payloads of every size up to the limits arrive whole, also those of negotiated-payload
 * messages? */
#include "t.h"

static volatile unsigned arrived;
static unsigned char *from;
static void check(const unsigned char *data, size_t size, gex_AM_Arg_t seed) {
    for (size_t i = 0; i < size; i++) {
        if (data[i] != (unsigned char)(i * 31 + (size_t)seed)) {
            EQUAL(i, -1);
        }
    }
}
static void reply(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t seed) {
    (void)token;
    check(data, size, seed);
    arrived++;
}
static void request(gex_Token_t token, void *data, size_t size, gex_AM_Arg_t seed) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(info.gex_is_req && info.gex_ep == ep && info.gex_entry->gex_cdata == &client);
    check(data, size, seed);
    if (info.gex_is_long && size % 2) {
        gex_AM_ReplyLong1(token, 201, data, size, base_of(info.gex_srcrank) + SEGMENT / 2, GEX_EVENT_NOW, 0, seed);
    } else if (size <= gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 1)) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, NULL, size, size, NULL, 0, 1);
        memcpy(gex_AM_SrcDescAddr(sd), data, size);
        gex_AM_CommitReplyMedium1(sd, 201, size, seed);
    } else {
        gex_AM_ReplyMedium1(token, 201, data, 0, GEX_EVENT_NOW, 0, seed);
    }
}

int main(void) {
    gex_AM_Entry_t table[] = {
        {200, (gex_AM_Fn_t)request, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 1, &client, "request"},
        {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 1, NULL, "reply"}};
    unsigned sent = 0;
    begin(table, 2);
    size_t medium = gex_AM_LUBRequestMedium();
    CHECK(medium >= 65536 && gex_AM_MaxArgs() == 16);
    from = malloc(SEGMENT / 4);
    for (size_t size = 0; size <= SEGMENT / 4; size = size < 4 ? size + 1 : size * 2 - 1) {
        for (unsigned to = 0; to < all; to++, sent++) {
            for (size_t i = 0; i < size; i++) {
                from[i] = (unsigned char)(i * 31 + sent);
            }
            if (size <= medium) {
                gex_Event_t local = GEX_EVENT_NO_OP;
                gex_AM_RequestMedium1(tm, to, 200, from, size, &local, 0, (gex_AM_Arg_t)sent);
                gex_Event_Wait(local);
            } else {
                gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(tm, to, from, 1, size, NULL, GEX_EVENT_NOW, 0, 1);
                EQUAL(gex_AM_SrcDescSize(sd), size);
                gex_AM_CommitRequestLong1(sd, 200, size, base_of(to) + me % 2 * (SEGMENT / 4),
                                          (gex_AM_Arg_t)sent);
            }
            GASNET_BLOCKUNTIL(arrived == sent + 1);
            barrier(); /* the next round overwrites these bytes from another rank */
        }
    }
    end();
}
