/* Broken if this fails: responses that found no credit at their requester are dropped by
 * llcl_finalize, or those that come to a rank that is in llcl_finalize.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

enum { ASK, ANSWER };
enum { ALL = 150 };

static void configure(llcl_config_t *config)
{
    config->am_slots = 1;
    config->am_handlers = am_handlers_by_mode();
}

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, ANSWER, NULL, 0);
    (void)data;
    CHECK_OK(llcl_am_respond(message, &am));
}

/* Slower than the requests are handled: so responses wait at the other rank. */
static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    usleep(2000);
    word_add(data, 1);
}

static void run(llcl_context_t *context)
{
    uint64_t *answered = am_new(sizeof *answered);
    llcl_am_params_t am = am_to(1, ASK, NULL, 0);
    uint32_t me = llcl_rank(context);
    int i;
    am_register(context, ASK, ask, NULL);
    am_register(context, ANSWER, answer, answered);
    fence(context);
    for (i = 0; i < ALL && me == 0; i++)
        CHECK_OK(llcl_am_async(context, &am));
    CHECK_OK(test_finalize(context));
    CHECK_EQUAL(word_get(answered), me == 0 ? ALL : 0);
}

int main(void)
{
    /* On a busy machine the answers take longer than the second that llcl_finalize waits for. */
    CHECK(setenv("LLCL_FINALIZE_MS", "20000", 1) == 0);
    return test_main(run, configure);
}
