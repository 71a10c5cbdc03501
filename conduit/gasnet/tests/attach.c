/* Does a message that a rank sends as soon as its gasnet_attach has returned leave the handler
 * waiting until the receiver's attach has returned, too? */
#include "t.h"

static volatile int attached, came;
static void handler(gasnet_token_t token) {
    (void)token;
    CHECK(attached);
    came++;
}

int main(int argc, char **argv) {
    gasnet_handlerentry_t table[] = {{200, (void (*)())handler}};
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    CHECK(gasnet_attach(table, 1, GASNET_PAGESIZE, 0) == GASNET_OK);
    attached = 1; /* before any call that polls */
    for (gasnet_node_t rank = 0; rank < gasnet_nodes(); rank++) {
        CHECK(gasnet_AMRequestShort0(rank, 200) == GASNET_OK);
    }
    GASNET_BLOCKUNTIL(came == (int)gasnet_nodes());
    gasnet_exit(0);
}
