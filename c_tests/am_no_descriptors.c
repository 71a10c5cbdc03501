/* Broken if this fails: the answer of a rank that has no free descriptor for its first contact with
 * the asker is lost, though it has some again later.
 */
#include "am.h"

static uint64_t asked;

static void answer(llcl_am_t *message, void *data)
{
    uint64_t value = 77;
    (void)data;
    CHECK_OK(llcl_am_reply(message, &value, sizeof value));
    word_add(&asked, 1);
}

static void run(llcl_context_t *context)
{
    am_register(context, 1, answer, NULL);
    if (llcl_rank(context) == 1) {
        descriptors_limit(3);
        fence(context);
        AWAIT(&asked, 1);
        usleep(50000);
        descriptors_limit(256);
    } else {
        uint64_t got = 0;
        llcl_am_params_t am = am_to(1, 1, NULL, 0);
        am.reply = &got;
        am.reply_capacity = sizeof got;
        fence(context);
        CHECK_OK(llcl_am(context, &am));
        CHECK_EQUAL(got, 77);
    }
    fence(context);
}

TEST_MAIN(run)
