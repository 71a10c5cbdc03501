/* Broken if this fails: a small write uses its source after the call has returned, moves wrong
 * bytes of some size, or takes a size beyond its limit.
 * ranks: 1 2 3 5
 * cma: on off
 * threads: yes
 * timeout: 40
 */
#include "rma_sizes.h"

static __thread size_t limit;

static void post(llcl_context_t *context, const struct transfer *transfer)
{
    llcl_write_small_params_t small = {0};
    unsigned char source[4096];
    CHECK(limit <= sizeof source);
    memcpy(source, transfer->local_bytes, transfer->size);
    small.peer = transfer->peer;
    small.flags = transfer->flags;
    small.source = source;
    small.destination = transfer->remote;
    small.size = transfer->size;
    small.on_complete = count_in(transfer->tally);
    POST(llcl_try_write_small_async(context, &small));
    memset(source, 0xff, sizeof source);
    small.size = limit + 1;
    CHECK_STATUS(llcl_try_write_small_async(context, &small), LLCL_ERR_RANGE);
    small.size = 1;
    small.source = NULL;
    CHECK_STATUS(llcl_try_write_small_async(context, &small), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    llcl_capabilities_t found = {0};
    found.struct_size = sizeof found;
    CHECK_OK(llcl_query(context, &found));
    CHECK(found.small >= 464);
    limit = found.small;
    all_sizes(context, sizes_write, post, limit);
}

TEST_MAIN(run)
