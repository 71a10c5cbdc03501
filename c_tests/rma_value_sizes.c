/* Broken if this fails: a write of 1 to 8 bytes taken from the request writes the wrong bytes of
 * the value, or more bytes than asked for; or another size is taken.
 * ranks: 1 2 3 8
 * cma: on off
 * threads: yes
 */
#include "rma_sizes.h"

static void post(llcl_context_t *context, const struct transfer *transfer)
{
    llcl_write_value_params_t value = {0};
    value.peer = transfer->peer;
    value.flags = transfer->flags;
    value.destination = transfer->remote;
    value.value = UINT64_MAX;
    memcpy(&value.value, transfer->local_bytes, transfer->size);
    value.size = transfer->size;
    value.on_complete = count_in(transfer->tally);
    if (value.size == 0) {
        CHECK_STATUS(llcl_try_write_value_async(context, &value), LLCL_ERR_INVALID);
        tally_fire(transfer->tally, LLCL_OK);
        return;
    }
    POST(llcl_try_write_value_async(context, &value));
    value.size = 9;
    CHECK_STATUS(llcl_try_write_value_async(context, &value), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    all_sizes(context, sizes_write, post, 8);
}

TEST_MAIN(run)
