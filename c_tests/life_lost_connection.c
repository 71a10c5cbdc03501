/* Broken if this fails: a rank that has lost its connection to llcl-run, because its program has
 * closed all descriptors, lives on although the others treat it as dead; or it is not dead to them.
 * exit: 137
 */
#include "shared.h"

#include <sys/socket.h>

static void run(llcl_context_t *context)
{
    int64_t end = now_ns() + INT64_C(5000000000);
    fence(context);
    if (llcl_rank(context) == 1) {
        int descriptor;
        for (descriptor = 3; descriptor < 256; descriptor++) {
            shutdown(descriptor, SHUT_RDWR); /* what another thread waits for is not closed before */
            close(descriptor);
        }
        sleep(10);
        _exit(1); /* the code of the job then */
    }
    while (llcl_peer_alive(context, 1) == LLCL_OK && now_ns() < end)
        usleep(100);
    CHECK_STATUS(llcl_peer_alive(context, 1), LLCL_ERR_PEER_DEAD);
    CHECK_OK(test_finalize(context));
}

TEST_MAIN(run)
