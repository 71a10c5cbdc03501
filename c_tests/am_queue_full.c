/* Broken if this fails: a message that is refused because the queue is full counts as one that
 * waits in the library, so that after many refusals no more may wait there.
 * ranks: 1 2
 * modes: offload
 * threads: yes
 */
#include "am.h"

enum { COUNT };
/* More than may wait for one peer. */
enum { REFUSALS = 1000 };

struct held {
    pthread_mutex_t lock;
    uint64_t entered;
};

static void configure(llcl_config_t *config)
{
    config->queue_entries = 8;
}

/* Holds up the progress thread, which empties the queue. */
static void hold(void *data, llcl_status_t status)
{
    struct held *held = data;
    CHECK_OK(status);
    word_set(&held->entered, 1);
    pthread_mutex_lock(&held->lock);
    pthread_mutex_unlock(&held->lock);
}

static uint64_t send_to_full(llcl_context_t *context, llcl_am_params_t *am, const struct shared *own)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    struct held held = {PTHREAD_MUTEX_INITIALIZER, 0};
    uint64_t accepted = 0;
    int i;
    pthread_mutex_lock(&held.lock);
    write.peer = llcl_rank(context);
    write.flags = LLCL_FLAG_DEFER;
    write.size = 8;
    write.destination = llcl_region_remote(own->region, 0);
    write.on_complete = llcl_callback(hold, &held);
    POST(llcl_try_write_value_async(context, &write));
    AWAIT(&held.entered, 1);
    am->flags = LLCL_FLAG_DEFER;
    while (llcl_try_am_async(context, am) == LLCL_OK)
        accepted++;
    for (i = 0; i < REFUSALS; i++)
        CHECK_STATUS(llcl_try_am_async(context, am), LLCL_RETRY_QUEUE_FULL);
    pthread_mutex_unlock(&held.lock);
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_am(context, am));
    return accepted + 1;
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    uint64_t *counted = am_new(sizeof *counted), mine, all[2];
    llcl_am_params_t am = am_to(peer, COUNT, NULL, 0);
    struct shared own;
    region_make(context, ALLOCATED, 64, &own);
    am_register(context, COUNT, am_count_up, counted);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    mine = send_to_full(context, &am, &own);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    AM_AWAIT(context, counted, all[peer]);
    fence(context);
    region_drop(&own);
}

TEST_MAIN_CONFIG(run, configure)
