/* Broken if this fails: messages to a rank whose handlers are polled, and which does not poll, stop
 * other ranks' operations on its memory: these wait behind the messages in their sender's queue, or
 * at the owner.
 * ranks: 2
 * cma: on off
 * threads: yes
 */
#include "wild.h"
#include "am.h"

#define FLOOD_NS INT64_C(30000000)
#define ROUNDS 200

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
    config->am_slots = 16;
    config->queue_entries = 64;
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

/* As many messages as are accepted, in every way; how many that was. */
static uint64_t flood(llcl_context_t *context)
{
    int64_t begin = now_ns();
    uint64_t accepted = 0, refused = 0;
    while (now_ns() - begin < FLOOD_NS || refused <= 10 || accepted < 16) {
        llcl_am_params_t am = am_to(0, 0, &accepted, sizeof accepted);
        llcl_status_t status;
        am.flags = refused % 2 ? LLCL_FLAG_DEFER : 0;
        status = llcl_try_am_async(context, &am);
        CHECK(status >= 0);
        accepted += status == LLCL_OK;
        refused += status != LLCL_OK;
        CHECK(now_ns() - begin < TEST_PATIENCE_NS);
    }
    return accepted;
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context);
    uint64_t handled = 0, sent[2], accepted = 0, *over;
    struct shared targets[MEMORY_KINDS], mine;
    int kind, round;
    am_register(context, 0, handle, &handled);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, 4096, &targets[kind]);
    region_make(context, ALLOCATED, 64, &mine);
    over = (uint64_t *)(void *)(targets[0].bytes + 2048);
    fence(context);
    if (me == 1) {
        struct wild wild = {0};
        llcl_write_value_params_t value = {0};
        int64_t slowest = 0;
        sleep_ms(50); /* until the other one has left the fence, where it would run handlers */
        accepted = flood(context);
        wild.peer = 0;
        wild.tier = TIER_BLOCKING;
        wild.local = llcl_region_local(mine.region, 0);
        wild.memory = mine.words + 1;
        for (round = 0; round < ROUNDS; round++) {
            int64_t begin = now_ns(), took;
            wild.operation = round % WILD_OPERATIONS;
            wild.remote = remote_at(&targets[round / WILD_OPERATIONS % MEMORY_KINDS], 0, 256);
            wild.signal = remote_at(&targets[round / WILD_OPERATIONS % MEMORY_KINDS], 0, 320);
            CHECK_OK(wild_post(context, &wild));
            took = now_ns() - begin;
            slowest = took > slowest ? took : slowest;
        }
        printf("%llu messages wait; the slowest of %d operations took %lld us\n",
               (unsigned long long)accepted, ROUNDS, (long long)slowest / 1000);
        value.peer = 0;
        value.value = 1;
        value.size = 8;
        value.destination = remote_at(&targets[0], 0, 2048);
        CHECK_OK(llcl_write_value(context, &value));
    } else {
        while (!word_get(over))
            usleep(1000);
        CHECK_EQUAL(word_get(&handled), 0);
    }
    CHECK_OK(llcl_allgather_bytes(context, &accepted, sizeof accepted, sent));
    if (me == 0)
        AM_AWAIT(context, &handled, sent[1]);
    fence(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
    region_drop(&mine);
}

TEST_MAIN_CONFIG(run, configure)
