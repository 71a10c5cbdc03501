/* For tests of responses that wait for slots: serial handlers, one slot, and handlers that ask,
 * answer and hold up. */
#ifndef AM_RESPONSES_H
#define AM_RESPONSES_H
#include "am.h"
#include "shared.h"

enum { ASK, ANSWER, HOLD, BUSY };

struct rank {
    struct shared target;
    const uint64_t *told; /* by the other rank */
    uint64_t asked, answered, held, let_go, begun, over;
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
    word_add(&((struct rank *)data)->asked, 1);
}

static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct rank *)data)->answered, 1);
}

/* Until it returns this rank handles nothing else: one response has the slot, the others wait. */
static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->held, 1);
    AWAIT(&rank->let_go, word_get(&rank->held));
}

/* Sends this rank a message that holds it up for the time with this number. It must not wait in the
 * library, so that the library's thread runs the handlers. */
static void hold_up(llcl_context_t *context, const struct rank *rank, uint64_t time)
{
    llcl_am_params_t am = am_to(llcl_rank(context), HOLD, NULL, 0);
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->held, time);
}

static void send_to_other(llcl_context_t *context, uint16_t id, uint64_t count)
{
    llcl_am_params_t am = am_to(1, id, NULL, 0);
    while (count--)
        POST(llcl_try_am_async(context, &am));
}

/* Stores a value into the other rank's word, and runs no handler there. */
static void tell(llcl_context_t *context, const struct rank *rank, uint64_t value)
{
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    write.peer = 1 - llcl_rank(context);
    write.source = llcl_local_address(&value);
    write.destination = remote_at(&rank->target, write.peer, 0);
    write.size = sizeof value;
    CHECK_OK(llcl_write(context, &write));
}

/* `busy`: another handler, or NULL. */
static struct rank *begin(llcl_context_t *context, llcl_am_handler_fn busy)
{
    struct rank *rank = am_new(sizeof *rank);
    share(context, ALLOCATED, 4096, &rank->target);
    rank->told = rank->target.words;
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    am_register(context, HOLD, hold, rank);
    if (busy)
        am_register(context, BUSY, busy, rank);
    fence(context);
    return rank;
}

static void end(llcl_context_t *context, struct rank *rank)
{
    fence(context);
    share_end(context, &rank->target);
}
#endif
