/* Broken if this fails: a write of some size or alignment between some kinds of memory moves wrong
 * bytes, touches bytes beside them, changes its source, or completes before its effect or twice.
 * ranks: 1 2 3 5
 * cma: on off
 * threads: 2
 * timeout: 60
 */
#include "rma_sizes.h"

static void post(llcl_context_t *context, const struct transfer *transfer)
{
    llcl_write_params_t write = {0};
    write.peer = transfer->peer;
    write.flags = transfer->flags;
    write.source = transfer->local;
    write.destination = transfer->remote;
    write.size = transfer->size;
    write.on_complete = count_in(transfer->tally);
    POST(llcl_try_write_async(context, &write));
}

static void run(llcl_context_t *context)
{
    all_sizes(context, sizes_write, post, SIZE_MAX);
}

TEST_MAIN(run)
