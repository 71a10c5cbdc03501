/* Broken if this fails: llcl_remote_pointer does not give the memory of the peer, or gives a
 * pointer where there is no mapping, out of range, or for bad arguments.
 * ranks: 1 2 3 5
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    struct shared allocated, registered;
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer;
    llcl_remote_t remote;
    share(context, ALLOCATED, 5000, &allocated);
    share(context, REGISTERED, 5000, &registered);
    for (peer = 0; peer < size; peer++) {
        unsigned char *bytes = llcl_remote_pointer(context, peer, allocated.remote[peer], 5000);
        uint64_t *word;
        CHECK((bytes != NULL) == is_near(context, peer));
        if (bytes == NULL) {
            CHECK(strstr(llcl_last_error(), "network") != NULL);
            continue;
        }
        CHECK(peer != me || bytes == allocated.bytes);
        word = llcl_remote_pointer(context, peer, remote_at(&allocated, peer, 8 * me + 8), 8);
        CHECK((unsigned char *)word == bytes + 8 * me + 8);
        word_set(word, 1000 + me);
        if (peer != me)
            CHECK(llcl_remote_pointer(context, peer, registered.remote[peer], 8) == NULL);
        CHECK(llcl_remote_pointer(context, peer, allocated.remote[peer], 5001) == NULL);
        CHECK(llcl_remote_pointer(context, peer, allocated.remote[peer], SIZE_MAX) == NULL);
        CHECK(llcl_remote_pointer(context, peer, remote_at(&allocated, peer, 4999), 1) != NULL);
        CHECK(llcl_remote_pointer(context, peer, remote_at(&allocated, peer, 5001), 1) == NULL);
        CHECK(llcl_remote_pointer(context, peer, remote_at(&allocated, peer, UINT64_MAX), 2) == NULL);
    }
    fence(context);
    for (peer = 0; peer < size; peer++)
        CHECK_EQUAL(word_get(&allocated.words[peer + 1]), is_near(context, peer) ? 1000 + peer : 0);
    CHECK(llcl_remote_pointer(NULL, 0, allocated.remote[0], 8) == NULL);
    CHECK(strlen(llcl_last_error()) > 3);
    CHECK(llcl_remote_pointer(context, size, allocated.remote[0], 8) == NULL);
    remote = allocated.remote[0];
    share_end(context, &allocated);
    fence(context);
    CHECK(llcl_remote_pointer(context, 0, remote, 8) == NULL);
    share_end(context, &registered);
}

TEST_MAIN(run)
