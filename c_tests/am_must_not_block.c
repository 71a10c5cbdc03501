/* Broken if this fails: a blocking call inside a handler, or inside a callback of a message, locks
 * the rank up instead of answering LLCL_ERR_STATE; or what a handler may do is refused.
 * ranks: 1 2
 * threads: yes
 */
#include "wild.h"
#include "am.h"

struct inside {
    llcl_context_t *context;
    struct wild wild;
    struct tally posted;
    uint64_t done, callbacks;
    struct later later;
};

static void nothing(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
}

static void blocking_is_refused(struct inside *in)
{
    struct wild wild = in->wild;
    llcl_context_t *context = in->context;
    llcl_am_params_t am = am_to(in->wild.peer, 2, NULL, 0);
    uint64_t word = 0;
    unsigned char byte[8], all[16];
    wild_must_not_wait(context, &wild);
    CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_STATE);
    CHECK(strlen(llcl_last_error()) > 3);
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_flush(context, in->wild.peer), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_flush_all(context), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_wait_word(context, &word, 1, 1000000), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_progress(context), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_allgather_bytes(context, byte, 1, all), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_finalize(context), LLCL_ERR_STATE);
}

static void fire(void *data, llcl_status_t status)
{
    struct inside *in = data;
    CHECK_OK(status);
    blocking_is_refused(in);
    word_add(&in->callbacks, 1);
}

static void handle(llcl_am_t *message, void *data)
{
    struct inside *in = data;
    llcl_context_t *context = in->context;
    struct wild wild = in->wild;
    llcl_am_params_t am = am_to(in->wild.peer, 2, NULL, 0);
    llcl_status_t status;
    blocking_is_refused(in);
    /* What is allowed: questions, handlers, the try functions. */
    am_limits(context);
    am_stats(context);
    CHECK_OK(llcl_peer_alive(context, in->wild.peer));
    status = llcl_am_register(context, 77, nothing, NULL);
    CHECK(status == LLCL_OK || status == LLCL_RETRY_BUSY);
    wild.operation = WILD_VALUE;
    wild.tier = TIER_TRY;
    wild.on_complete = count_in(&in->posted);
    status = wild_post(context, &wild);
    CHECK(status >= 0);
    if (status != LLCL_OK)
        word_add(&in->posted.fired, 1);
    am.on_complete = count_in(&in->posted);
    later_send(&in->later, context, &am);
    CHECK_OK(llcl_am_reply(message, NULL, 0));
    word_add(&in->done, 1);
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), i;
    struct inside *in = am_new(sizeof *in);
    struct shared target, mine;
    share(context, ALLOCATED, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    later_make(&in->later);
    in->context = context;
    in->wild.peer = peer;
    in->wild.local = llcl_region_local(mine.region, 0);
    in->wild.memory = mine.words;
    in->wild.remote = remote_at(&target, peer, 0);
    in->wild.signal = remote_at(&target, peer, 64);
    am_register(context, 1, handle, in);
    am_register(context, 2, nothing, NULL);
    fence(context);
    for (i = 0; i < 20; i++) {
        llcl_am_params_t am = am_to(peer, 1, NULL, 0);
        am.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
        am.on_complete = llcl_callback(fire, in);
        POST(llcl_try_am_async(context, &am));
    }
    later_await(&in->later, context, &in->done, 20);
    AM_AWAIT(context, &in->callbacks, 20);
    later_await(&in->later, context, &in->posted.fired, 40);
    CHECK_EQUAL(in->posted.failed, 0);
    CHECK_OK(llcl_flush_all(context));
    share_end(context, &target);
    region_drop(&mine);
}

TEST_MAIN(run)
