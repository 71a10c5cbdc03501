/* Broken if this fails: messages that wait in the library for a peer that handles none keep
 * messages to another peer from being accepted, or have a blocking call to that other peer wait for
 * ever; or a blocking call to the first one is not accepted when that one handles messages again.
 * ranks: 3
 * modes: auto offload
 * threads: 3
 */
#include "am.h"

enum { COUNT };
enum { OTHERS = 100, MANY = 100000 };

static llcl_am_params_t late(uint32_t peer)
{
    llcl_am_params_t am = am_to(peer, COUNT, NULL, 0);
    am.flags = LLCL_FLAG_DEFER;
    return am;
}

/* As many as may wait for rank 1, which handles nothing, more than it has slots. */
static uint64_t fill(llcl_context_t *context)
{
    uint64_t accepted = 0;
    llcl_am_params_t am = late(1);
    llcl_status_t status;
    while ((status = llcl_try_am_async(context, &am)) == LLCL_OK || status == LLCL_RETRY_QUEUE_FULL) {
        accepted += status == LLCL_OK;
        CHECK(accepted < MANY);
        /* Until the lane has taken in what was accepted. */
        if (accepted % 16 == 0)
            sched_yield();
    }
    CHECK_STATUS(status, LLCL_RETRY_NO_CREDIT);
    CHECK(accepted > 4);
    return accepted;
}

static void send_all(llcl_context_t *context, const struct shared *words)
{
    llcl_write_value_params_t value = {0};
    llcl_am_params_t am = late(2);
    uint64_t accepted = fill(context), all[3];
    int i;
    for (i = 0; i < OTHERS; i++)
        CHECK_OK(llcl_try_am_async(context, &am));
    for (i = 0; i < OTHERS; i++)
        CHECK_OK(llcl_am_async(context, &am));
    value.peer = 1;
    value.value = 1;
    value.size = 8;
    value.destination = remote_at(words, 1, 0);
    CHECK_OK(llcl_write_value(context, &value));
    am = late(1);
    for (i = 0; i < OTHERS; i++)
        CHECK_OK(llcl_am_async(context, &am));
    accepted += OTHERS;
    CHECK_OK(llcl_allgather_bytes(context, &accepted, sizeof accepted, all));
}

static void run(llcl_context_t *context)
{
    uint64_t *counted = am_new(sizeof *counted), none = 0, all[3];
    struct shared words;
    share(context, ALLOCATED, 64, &words);
    am_register(context, COUNT, am_count_up, counted);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0) {
        send_all(context, &words);
    } else {
        /* Rank 1 handles nothing until rank 0 is done with rank 2. */
        if (llcl_rank(context) == 1)
            AWAIT(words.words, 1);
        else
            AM_AWAIT(context, counted, 2 * OTHERS);
        CHECK_OK(llcl_allgather_bytes(context, &none, sizeof none, all));
        if (llcl_rank(context) == 1)
            AM_AWAIT(context, counted, all[0]);
    }
    share_end(context, &words);
}

TEST_MAIN_CONFIG(run, am_few_polled)
