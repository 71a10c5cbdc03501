/* Does each form of put and get move the bytes that it names, and no others? */
#include "t.h"

static void put_as(int form, unsigned to, void *at, unsigned char *from, size_t size) {
    gex_Event_t root, local = GEX_EVENT_NO_OP;
    switch (form) {
    case 0: gex_RMA_PutBlocking(tm, to, at, from, size, 0); break;
    case 1: gex_Event_Wait(gex_RMA_PutNB(tm, to, at, from, size, GEX_EVENT_DEFER, 0)); break;
    case 2:
        root = gex_RMA_PutNB(tm, to, at, from, size, &local, 0);
        CHECK(local != GEX_EVENT_NO_OP);
        gex_Event_Wait(local), gex_Event_Wait(root);
        break;
    case 3: gex_RMA_PutNBI(tm, to, at, from, size, GEX_EVENT_GROUP, 0), gex_NBI_Wait(GEX_EC_ALL, 0); break;
    case 4: gasnet_put(to, at, from, size); break;
    case 5: gasnet_wait_syncnb(gasnet_put_nb_bulk(to, at, from, size)); break;
    case 6: gasnet_put_nbi(to, at, from, size), gasnet_wait_syncnbi_puts(); break;
    }
}

static void get_as(int form, unsigned char *to, unsigned from, void *at, size_t size) {
    switch (form) {
    case 0: gex_RMA_GetBlocking(tm, to, from, at, size, 0); break;
    case 1: gex_Event_Wait(gex_RMA_GetNB(tm, to, from, at, size, 0)); break;
    case 2: gex_RMA_GetNBI(tm, to, from, at, size, 0), gex_NBI_Wait(GEX_EC_GET, 0); break;
    case 3: gasnet_get_bulk(to, from, at, size); break;
    case 4: gasnet_wait_syncnb(gasnet_get_nb(to, from, at, size)); break;
    case 5: gasnet_get_nbi_bulk(to, from, at, size), gasnet_wait_syncnbi_all(); break;
    case 6: gasnet_begin_nbi_accessregion(), gasnet_get_nbi(to, from, at, size),
            gasnet_wait_syncnb(gasnet_end_nbi_accessregion()); break;
    }
}

int main(void) {
    static const size_t sizes[] = {0, 1, 3, 8, 64, 4095, 65536};
    static unsigned char out[65536], in[65536 + 2];
    begin(NULL, 0);
    unsigned next = (me + 1) % all;
    char *there = base_of(next) + 64 + 100000 * 0;
    for (int form = 0; form < 7; form++) {
        for (unsigned s = 0; s < 7; s++) {
            size_t size = sizes[s];
            for (size_t i = 0; i < sizeof out; i++) {
                out[i] = (unsigned char)(i * 7 + me + form + s);
            }
            gasnet_memset(next, there - 1, 0xee, sizeof out + 2);
            put_as(form, next, there, out, size);
            get_as(form, in, next, there - 1, size + 2);
            CHECK(in[0] == 0xee && in[size + 1] == 0xee && !memcmp(in + 1, out, size));
        }
    }
    for (size_t size = 1; size <= 8; size++) {
        gex_RMA_PutBlockingVal(tm, next, there, 0x1122334455667788u, size, 0);
        gex_RMA_Value_t mask = size == 8 ? ~(gex_RMA_Value_t)0 : ((gex_RMA_Value_t)1 << 8 * size) - 1;
        CHECK(gex_RMA_GetBlockingVal(tm, next, there, size, 0) == (0x1122334455667788u & mask));
        gasnet_put_val(next, there, size, 8);
        CHECK(gasnet_wait_syncnb_valget(gasnet_get_nb_val(next, there, 8)) == size);
    }
    end();
}
