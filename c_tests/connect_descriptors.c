/* Broken if this fails: a contacted peer costs a descriptor for as long as the context lives; or
 * memory that a peer has allocated since it was contacted is not reached without one.
 * ranks: 5
 * modes: auto
 */
#include "shared.h"

#include <fcntl.h>

#define ROUNDS 3
#define BYTES ((size_t)3 << 20)
#define STEP 4096

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Each round the memory files get longer, or the ranges of before are used again. */
static void reach_new_memory(llcl_context_t *context, uint32_t round)
{
    struct shared shared;
    uint32_t size = llcl_size(context), me = llcl_rank(context), peer;
    share(context, ALLOCATED, BYTES + round * STEP, &shared);
    for (peer = 0; peer < size; peer++) {
        llcl_write_value_params_t value = {0};
        value.peer = peer;
        value.size = 8;
        value.value = 100 * round + me + 1;
        value.destination = remote_at(&shared, peer, BYTES + round * STEP - 8 * (me + 1));
        CHECK_OK(llcl_write_value(context, &value));
    }
    fence(context);
    for (peer = 0; peer < size; peer++)
        CHECK_EQUAL(shared.words[(BYTES + round * STEP) / 8 - peer - 1], 100 * round + peer + 1);
    share_end(context, &shared);
}

static void run(llcl_context_t *context)
{
    int before = descriptors();
    fence(context);
    CHECK_OK(llcl_connect(context, NULL, 0));
    CHECK_EQUAL(descriptors(), before);
    for (uint32_t round = 0; round < ROUNDS; round++)
        reach_new_memory(context, round);
    CHECK_EQUAL(descriptors(), before);
    fence(context);
}

TEST_MAIN(run)
