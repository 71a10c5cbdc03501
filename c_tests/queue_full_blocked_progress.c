/* Broken if this fails: while the progress thread is held up in a callback, a full queue is not
 * answered with LLCL_RETRY_QUEUE_FULL at once, or something that was accepted is lost or doubled.
 * ranks: 1 2
 * modes: offload
 * threads: yes
 */
#include "shared.h"

struct held {
    pthread_mutex_t lock;
    uint64_t entered;
    struct tally tally;
};

static void hold(void *data, llcl_status_t status)
{
    struct held *held = data;
    CHECK_OK(status);
    word_set(&held->entered, 1);
    pthread_mutex_lock(&held->lock);
    pthread_mutex_unlock(&held->lock);
}

static void configure(llcl_config_t *config)
{
    config->queue_entries = 8;
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    struct shared target, mine;
    struct held held;
    llcl_write_params_t write = {0};
    llcl_status_t status;
    uint64_t accepted = 0;
    int round;
    share(context, ALLOCATED, 4096, &target);
    region_make(context, REGISTERED, 64, &mine);
    write.peer = peer;
    write.flags = LLCL_FLAG_DEFER;
    write.source = llcl_region_local(mine.region, 0);
    write.destination = remote_at(&target, peer, 0);
    write.size = 8;
    for (round = 0; round < 10; round++) {
        memset(&held, 0, sizeof held);
        pthread_mutex_init(&held.lock, NULL);
        pthread_mutex_lock(&held.lock);
        write.on_complete = llcl_callback(hold, &held);
        POST(llcl_try_write_async(context, &write));
        AWAIT(&held.entered, 1);
        write.on_complete = count_in(&held.tally);
        for (accepted = 0; accepted < 10000; accepted++) {
            status = llcl_try_write_async(context, &write);
            if (status != LLCL_OK)
                break;
        }
        CHECK_STATUS(status, LLCL_RETRY_QUEUE_FULL);
        CHECK(accepted >= 7); /* the one that is held up may still have its place */
        CHECK_STATUS(llcl_try_write_async(context, &write), LLCL_RETRY_QUEUE_FULL);
        CHECK_EQUAL(word_get(&held.tally.fired), 0);
        pthread_mutex_unlock(&held.lock);
        AWAIT(&held.tally.fired, accepted);
        CHECK_OK(llcl_flush_all(context));
        CHECK_EQUAL(word_get(&held.tally.fired), accepted);
        CHECK_EQUAL(held.tally.failed, 0);
        pthread_mutex_destroy(&held.lock);
    }
    share_end(context, &target);
    region_drop(&mine);
}

TEST_MAIN_CONFIG(run, configure)
