/* Broken if this fails: a flush waits for the callback of a message that was sent after it had
 * begun, or a flush of one peer for that of a message to another. Where callbacks always send the
 * next message, such a flush hardly ever ends.
 * ranks: 3
 * modes: auto direct
 * threads: yes
 * timeout: 60
 */
#include "am.h"

#define WAITERS 4
#define ROUNDS 8
#define LONG_MS 100
#define SOON_NS INT64_C(4000000000)

struct chain {
    llcl_context_t *context;
    uint64_t stop, begun, next_begun, next_ended, flushed;
    uint64_t sends_next;
};

static __thread int flushes;

static void configure(llcl_config_t *config)
{
    config->am_handlers = LLCL_AM_HANDLERS_PARALLEL;
}

static void request(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, 2, NULL, 0);
    (void)data;
    CHECK_OK(llcl_am_respond(message, &am));
}

static void nothing(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
}

/* Returns when the flush has ended, or much later. In the thread that flushes it must return. */
static void until_flushed(struct chain *chain)
{
    int64_t end = now_ns() + 2 * SOON_NS;
    while (!flushes && !word_get(&chain->flushed) && now_ns() < end)
        usleep(100);
}

static void next(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    CHECK_OK(status);
    word_set(&chain->next_begun, 1);
    until_flushed(chain);
    word_set(&chain->next_ended, 1);
}

static void first(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    llcl_am_params_t am = am_to(1, 1, NULL, 0);
    CHECK_OK(status);
    word_set(&chain->begun, 1);
    if (!chain->sends_next) {
        until_flushed(chain);
        word_set(&chain->next_ended, 1);
        return;
    }
    /* The flush begins meanwhile. */
    sleep_ms(LONG_MS);
    am.flags = LLCL_FLAG_PARK;
    am.on_complete = llcl_callback(next, chain);
    CHECK_OK(llcl_try_am_async(chain->context, &am));
    /* If no other thread runs the next callback, this one must return. */
    if (!flushes)
        word_reaches(&chain->next_begun, 1, INT64_C(1000000000));
}

static void *wait_for_nothing(void *data)
{
    struct chain *chain = data;
    uint64_t never = 0;
    while (!word_get(&chain->stop))
        CHECK_STATUS(llcl_wait_word(chain->context, &never, 1, 20000000), LLCL_ERR_TIMEOUT);
    return NULL;
}

static void flush_beside(llcl_context_t *context, struct chain *chain, uint32_t peer, int sends_next)
{
    llcl_am_params_t am = am_to(1, 1, NULL, 0);
    chain->begun = chain->next_begun = chain->next_ended = chain->flushed = 0;
    word_set(&chain->sends_next, (uint64_t)sends_next);
    am.on_complete = llcl_callback(first, chain);
    POST(llcl_try_am_async(context, &am));
    AWAIT(&chain->begun, 1);
    flushes = 1;
    CHECK_OK(llcl_flush_within(context, peer, SOON_NS));
    flushes = 0;
    word_set(&chain->flushed, 1);
    AM_AWAIT(context, &chain->next_ended, 1);
}

static void run(llcl_context_t *context)
{
    struct chain *chain = am_new(sizeof *chain);
    pthread_t threads[WAITERS];
    int i;
    am_register(context, 1, request, NULL);
    am_register(context, 2, nothing, NULL);
    chain->context = context;
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 0) {
        for (i = 0; i < WAITERS; i++)
            CHECK(pthread_create(&threads[i], NULL, wait_for_nothing, chain) == 0);
        for (i = 0; i < ROUNDS; i++) {
            flush_beside(context, chain, 2, 0);
            flush_beside(context, chain, 1, 1);
        }
        word_set(&chain->stop, 1);
        for (i = 0; i < WAITERS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK_OK(llcl_flush_all(context));
    }
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
