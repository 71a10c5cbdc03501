/* Broken if this fails: a box or a list in memory that only its owner can access takes a message
 * for each piece, and not one for as many as 32 KiB hold; or llcl_stats_get does not count such
 * messages.
 * ranks: 2
 * modes: auto offload direct
 * cma: off
 * threads: yes
 * wire: no (a network that reads and writes memory asks no owner)
 */
#include "shared.h"

/* A piece takes 16 bytes more than its own. */
enum { EACH = 8, STRIDE = 24, IN_A_MESSAGE = (32 << 10) / (EACH + 16), MOST = 3000 };

static uint64_t requests(llcl_context_t *context)
{
    llcl_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    CHECK_OK(llcl_stats_get(context, &stats));
    return stats.owner_requests;
}

static void counted(llcl_context_t *context, const struct shared *shared, unsigned char *own, uint64_t pieces)
{
    static llcl_local_span_t ours[MOST];
    static llcl_remote_span_t theirs[MOST];
    llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
    llcl_vector_params_t list = LLCL_VECTOR_PARAMS_INIT;
    uint64_t messages = (pieces + IN_A_MESSAGE - 1) / IN_A_MESSAGE, before = requests(context), i;
    box.peer = list.peer = 1;
    box.local = llcl_local_address(own);
    box.remote = remote_at(shared, 1, 0);
    box.size = EACH;
    box.dimensions = 1;
    box.extents[0] = pieces;
    box.local_strides[0] = box.remote_strides[0] = STRIDE;
    for (i = 0; i < pieces; i++) {
        ours[i].place = llcl_local_address(own + i * STRIDE);
        theirs[i].place = remote_at(shared, 1, i * STRIDE);
        ours[i].size = theirs[i].size = EACH;
    }
    list.locals = ours;
    list.remotes = theirs;
    list.local_count = list.remote_count = pieces;
    CHECK_OK(llcl_write_strided(context, &box));
    CHECK_EQUAL(requests(context) - before, messages);
    CHECK_OK(llcl_read_strided(context, &box));
    CHECK_EQUAL(requests(context) - before, 2 * messages);
    CHECK_OK(llcl_writev(context, &list));
    CHECK_EQUAL(requests(context) - before, 3 * messages);
    CHECK_OK(llcl_readv(context, &list));
    CHECK_EQUAL(requests(context) - before, 4 * messages);
}

static void run(llcl_context_t *context)
{
    struct shared shared;
    unsigned char *own = malloc(MOST * STRIDE);
    CHECK(own != NULL);
    memset(own, 1, MOST * STRIDE);
    share(context, REGISTERED, MOST * STRIDE, &shared);
    if (llcl_rank(context) == 0) {
        counted(context, &shared, own, 2);
        counted(context, &shared, own, 64);
        counted(context, &shared, own, IN_A_MESSAGE);
        counted(context, &shared, own, IN_A_MESSAGE + 2);
        counted(context, &shared, own, MOST);
    }
    fence(context);
    share_end(context, &shared);
    free(own);
}

TEST_MAIN(run)
