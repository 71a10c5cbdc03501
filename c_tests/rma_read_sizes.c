/* Broken if this fails: a read of some size or alignment between some kinds of memory brings wrong
 * bytes, touches bytes beside them, or completes before the data is here, or twice.
 * ranks: 1 2 3 5
 * cma: on off
 * threads: 2
 * timeout: 60
 */
#include "rma_sizes.h"

static void post(llcl_context_t *context, const struct transfer *transfer)
{
    llcl_read_params_t read = {0};
    read.peer = transfer->peer;
    read.flags = transfer->flags;
    read.source = transfer->remote;
    read.destination = transfer->local;
    read.size = transfer->size;
    read.on_complete = count_in(transfer->tally);
    POST(llcl_try_read_async(context, &read));
}

static void run(llcl_context_t *context)
{
    all_sizes(context, sizes_read, post, SIZE_MAX);
}

TEST_MAIN(run)
