/* Broken if this fails: while messages to one rank wait for credit, because its handler does not
 * return, messages to another rank, or reads and writes, wait behind them; also messages that have
 * waited for credit of that other rank, and now find it.
 * ranks: 3
 * policies: acquire limit distributed
 * threads: 3
 */
#include "wild.h"
#include "am.h"

#define WAITING 10u
#define OTHERS 40u
#define RELEASED 512 /* where the first rank says so */

/* Of the rank whose handler does not return until it is released. */
struct held {
    const uint64_t *released;
    uint64_t count, given_up;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 4;
}

static void hold(llcl_am_t *message, void *data)
{
    struct held *held = data;
    int64_t limit = now_ns() + TEST_PATIENCE_NS / 2;
    (void)message;
    while (!word_get(held->released) && now_ns() < limit)
        usleep(500);
    if (!word_get(held->released))
        word_add(&held->given_up, 1);
    word_add(&held->count, 1);
}

static void quick(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK_OK(llcl_am_reply(message, NULL, 0));
}

/* Returns how many messages to a rank whose handler does not return were accepted. Some of them
 * wait: in auto and direct mode those with DEFER. */
static uint64_t send_some(llcl_context_t *context, uint32_t peer)
{
    uint32_t i;
    uint64_t accepted = 0;
    for (i = 0; i < WAITING; i++) {
        llcl_am_params_t am = am_to(peer, 0, NULL, 0);
        llcl_status_t status;
        am.flags = LLCL_FLAG_DEFER;
        status = llcl_try_am_async(context, &am);
        CHECK(status >= 0);
        accepted += status == LLCL_OK;
    }
    CHECK(accepted > 4);
    return accepted;
}

static void release(llcl_context_t *context, const struct shared *target, uint32_t peer)
{
    llcl_write_value_params_t release = LLCL_WRITE_VALUE_PARAMS_INIT;
    release.peer = peer;
    release.destination = remote_at(target, peer, RELEASED);
    release.value = 1;
    release.size = sizeof(uint64_t);
    CHECK_OK(llcl_write_value(context, &release));
}

static void send_all(llcl_context_t *context, const struct shared *target, struct shared *mine,
                     uint64_t sent[3])
{
    uint32_t i;
    struct wild wild = {0};
    sent[1] = send_some(context, 1);
    sent[2] = send_some(context, 2);
    release(context, target, 2);
    CHECK_OK(llcl_flush(context, 2));
    wild.peer = 2;
    wild.tier = TIER_BLOCKING;
    wild.local = llcl_region_local(mine->region, 0);
    wild.memory = mine->words;
    wild.remote = remote_at(target, 2, 0);
    wild.signal = remote_at(target, 2, 64);
    for (i = 0; i < OTHERS; i++) {
        llcl_am_params_t am = am_to(2, 1, NULL, 0);
        am.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
        CHECK_OK(llcl_am(context, &am));
        wild.flags = am.flags;
        wild.operation = (int)(i % WILD_OPERATIONS);
        CHECK_OK(wild_post(context, &wild));
    }
    release(context, target, 1);
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    struct held *held = am_new(sizeof *held);
    uint64_t sent[3] = {0, 0, 0}, all[9];
    uint32_t me = llcl_rank(context);
    share(context, ALLOCATED, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    word_set(target.words + RELEASED / 8, 0);
    held->released = target.words + RELEASED / 8;
    am_register(context, 0, hold, held);
    am_register(context, 1, quick, NULL);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (me == 0)
        send_all(context, &target, &mine, sent);
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_allgather_bytes(context, sent, sizeof sent, all));
    AM_AWAIT(context, &held->count, all[me]);
    /* Rank 1 was released when everything else was done, and not because it had waited for too
     * long. */
    CHECK_EQUAL(held->given_up, 0);
    fence(context);
    region_drop(&mine);
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, configure)
