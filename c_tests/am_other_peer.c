/* Broken if this fails: while messages to one rank wait for credit, because its handler is slow, messages
 * to another rank, or reads and writes, wait behind them.
 * ranks: 3
 * policies: acquire limit distributed
 * threads: 3
 */
#include "wild.h"
#include "am.h"

#define SLOW_MS 80
#define WAITING 10u

static void configure(llcl_config_t *config)
{
    config->am_slots = 4;
}

static void slow(llcl_am_t *message, void *data)
{
    (void)message;
    sleep_ms(SLOW_MS);
    word_add(data, 1);
}

static void quick(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK_OK(llcl_am_reply(message, NULL, 0));
}

static uint64_t send_all(llcl_context_t *context, const struct shared *target, struct shared *mine)
{
    uint32_t i;
    uint64_t waiting = 0;
    int64_t slowest = 0;
    int late = 0;
    struct wild wild = {0};
    /* In auto and direct mode nothing waits but in the slots; in offload mode and with DEFER it does. */
    for (i = 0; i < WAITING; i++) {
        llcl_am_params_t am = am_to(1, 0, NULL, 0);
        llcl_status_t status;
        am.flags = LLCL_FLAG_DEFER;
        status = llcl_try_am_async(context, &am);
        CHECK(status >= 0);
        waiting += status == LLCL_OK;
    }
    wild.peer = 2;
    wild.tier = TIER_BLOCKING;
    wild.local = llcl_region_local(mine->region, 0);
    wild.memory = mine->words;
    wild.remote = remote_at(target, 2, 0);
    wild.signal = remote_at(target, 2, 64);
    for (i = 0; i < 40; i++) {
        int64_t begin = now_ns(), took;
        llcl_am_params_t am = am_to(2, 1, NULL, 0);
        am.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
        CHECK_OK(llcl_am(context, &am));
        wild.flags = am.flags;
        wild.operation = (int)(i % WILD_OPERATIONS);
        CHECK_OK(wild_post(context, &wild));
        took = now_ns() - begin;
        slowest = took > slowest ? took : slowest;
        late += took >= SLOW_MS * INT64_C(1000000) * 9 / 10;
    }
    printf("%llu messages waited, slowest of the others %lld us\n", (unsigned long long)waiting,
           (long long)slowest / 1000);
    CHECK(waiting > 4);
    /* A busy machine may be late now and then; what waits behind others is late again and again. */
    CHECK(late <= 2);
    return waiting;
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    uint64_t *slow_ones = am_new(sizeof *slow_ones), sent = 0, all[3];
    share(context, ALLOCATED, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    am_register(context, 0, slow, slow_ones);
    am_register(context, 1, quick, NULL);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0)
        sent = send_all(context, &target, &mine);
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_allgather_bytes(context, &sent, sizeof sent, all));
    region_drop(&mine);
    share_end(context, &target);
    if (llcl_rank(context) == 1)
        AM_AWAIT(context, slow_ones, all[0]);
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
