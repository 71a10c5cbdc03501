/* For tests of responses that wait for slots: serial handlers, one slot, and handlers that ask and
 * answer. Their data begins with a struct responses. */
#ifndef AM_RESPONSES_H
#define AM_RESPONSES_H
#include "am.h"

enum { ASK, ANSWER, HOLD, BUSY };

struct responses {
    uint64_t asked, answered;
};

static void one_slot(llcl_config_t *config)
{
    config->am_slots = 1;
    config->am_handlers = LLCL_AM_HANDLERS_SERIAL;
}

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, ANSWER, NULL, 0);
    CHECK_OK(llcl_am_respond(message, &am));
    word_add(&((struct responses *)data)->asked, 1);
}

static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct responses *)data)->answered, 1);
}
#endif
