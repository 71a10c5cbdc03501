/* Do ranks that flood each other with requests, each answered, lock up or lose one? */
#include "t.h"

#define COUNT 20000
static volatile unsigned requests, replies;
static void reply(gex_Token_t token) {
    (void)token;
    replies++;
}
static void request(gex_Token_t token, void *data, size_t size) {
    requests++;
    gex_AM_ReplyShort0(token, 201, 0);
    (void)data, (void)size;
}

int main(void) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)request, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    static char bytes[1024];
    begin(table, 2);
    for (unsigned i = 0; i < COUNT; i++) {
        gex_AM_RequestMedium0(tm, (me + i) % all, 200, bytes, i % sizeof bytes, GEX_EVENT_NOW, 0);
    }
    GASNET_BLOCKUNTIL(replies == COUNT);
    barrier();
    GASNET_BLOCKUNTIL(requests == COUNT);
    barrier();
    EQUAL(requests, COUNT);
    EQUAL(replies, COUNT);
    end();
}
