/* Broken if this fails: a thread that uses several contexts does not know for each of them which
 * handlers have run, so that llcl_am_wait returns although no message has come for that context
 * since the last call.
 * kind: alone
 * modes: auto
 */
#include "am.h"

enum { CONTEXTS = 3 };

static void count(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static llcl_context_t *make(uint64_t *counted)
{
    llcl_config_t config;
    llcl_context_t *context = NULL;
    CHECK_OK(llcl_config_default(&config));
    config.am_handlers = LLCL_AM_HANDLERS_POLLED;
    CHECK_OK(llcl_init(&config, &context));
    am_register(context, 0, count, counted);
    return context;
}

int main(void)
{
    llcl_context_t *contexts[CONTEXTS];
    uint64_t counted[CONTEXTS] = {0};
    int round, i;
    for (i = 0; i < CONTEXTS; i++)
        contexts[i] = make(&counted[i]);
    for (round = 1; round <= 2; round++) {
        for (i = 0; i < CONTEXTS; i++) {
            llcl_am_params_t am = am_to(0, 0, NULL, 0);
            CHECK_OK(llcl_am_async(contexts[i], &am));
            CHECK_OK(llcl_am_wait(contexts[i], TEST_PATIENCE_NS));
            CHECK_EQUAL(word_get(&counted[i]), round);
        }
        for (i = 0; i < CONTEXTS; i++)
            CHECK_STATUS(llcl_am_wait(contexts[i], 0), LLCL_ERR_TIMEOUT);
    }
    for (i = 0; i < CONTEXTS; i++)
        CHECK_OK(llcl_finalize(contexts[i]));
    printf("passed\n");
    return 0;
}
