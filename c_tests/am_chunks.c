/* Broken if this fails: large payloads (64 KiB) of several ranks and threads for one chunk
 * (LLCL_AM_CHUNKS) are lost, doubled, mixed, or wait for ever; or more messages are kept than
 * LLCL_AM_RETAINED allows.
 * ranks: 3
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

enum { CHECK_IT, KEEP };
enum { LARGE = 65536, EACH = 150, THREADS = 2, RETAINED = 4 };

struct rank {
    llcl_context_t *context;
    struct ledger ledger;
    uint64_t kept, refused;
    llcl_am_t *keeps[RETAINED];
    uint32_t thread;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 4;
}

static void check_it(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    uint32_t number;
    CHECK_EQUAL(view.header_size, sizeof number);
    memcpy(&number, view.header, sizeof number);
    CHECK_EQUAL(view.payload_size, LARGE - number % 8);
    CHECK(pattern_holds(view.payload, view.payload_size, view.source * EACH * THREADS + number));
    ledger_mark(&rank->ledger, view.source, number);
}

static void keep(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_t *kept = llcl_am_retain(message);
    if (!kept) {
        CHECK(strstr(llcl_last_error(), "LLCL_AM_RETAINED") != NULL);
        /* The message is still as it came. */
        CHECK(llcl_am_retain(message) == NULL);
        CHECK(strstr(llcl_last_error(), "LLCL_AM_RETAINED") != NULL);
        word_add(&rank->refused, 1);
    } else {
        CHECK(rank->kept < RETAINED);
        rank->keeps[rank->kept] = kept;
        word_add(&rank->kept, 1);
    }
}

static void *flood(void *data)
{
    struct rank *mine = data;
    uint32_t me = llcl_rank(mine->context), i;
    unsigned char *bytes = malloc(LARGE);
    CHECK(bytes != NULL);
    for (i = 0; i < EACH; i++) {
        uint32_t number = mine->thread * EACH + i;
        llcl_am_params_t am = am_to(0, CHECK_IT, &number, sizeof number);
        pattern_fill(bytes, LARGE, me * EACH * THREADS + number);
        am.payload = bytes;
        am.payload_size = LARGE - number % 8;
        if (i % 16 == 0)
            CHECK_OK(llcl_am(mine->context, &am));
        else
            CHECK_OK(llcl_am_async(mine->context, &am));
        /* Not ours before on_local in offload mode. */
        if (test_mode_is("offload"))
            CHECK_OK(llcl_flush(mine->context, 0));
    }
    free(bytes);
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank), *mine = am_new(THREADS * sizeof *mine);
    pthread_t threads[THREADS];
    uint32_t i;
    rank->context = context;
    ledger_make(&rank->ledger, 3, EACH * THREADS);
    am_register(context, CHECK_IT, check_it, rank);
    am_register(context, KEEP, keep, rank);
    fence(context);
    for (i = 0; i < THREADS; i++) {
        mine[i].context = context;
        mine[i].thread = i;
        CHECK(pthread_create(&threads[i], NULL, flood, &mine[i]) == 0);
    }
    if (llcl_rank(context) == 0)
        ledger_await(context, &rank->ledger, AM_PATIENCE_NS);
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    fence(context);
    for (i = 0; i < RETAINED + 2 && llcl_rank(context) == 1; i++) {
        llcl_am_params_t am = am_to(0, KEEP, NULL, 0);
        CHECK_OK(llcl_am_async(context, &am));
    }
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_am_params_t am = am_to(0, KEEP, NULL, 0);
        AM_AWAIT(context, &rank->refused, 2);
        CHECK_EQUAL(rank->kept, RETAINED);
        CHECK_OK(llcl_am_release(rank->keeps[--rank->kept]));
        CHECK_OK(llcl_am_async(context, &am));
        AM_AWAIT(context, &rank->kept, RETAINED);
        for (i = 0; i < RETAINED; i++)
            CHECK_OK(llcl_am_release(rank->keeps[i]));
    }
    fence(context);
}

int main(void)
{
    CHECK(setenv("LLCL_AM_CHUNKS", "1", 1) == 0);
    CHECK(setenv("LLCL_AM_RETAINED", "4", 1) == 0);
    return test_main(run, configure);
}
