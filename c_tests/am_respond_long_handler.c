/* Broken if this fails: responses that wait for slots at their requester wait until a long handler
 * of their own rank has returned, though another thread of that rank is in the library.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"

enum { ASKED = 20 };

/* Returns when the requester has got all responses. */
static void busy(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->begun, 1);
    AWAIT(rank->told, 1);
    word_add(&rank->over, 1);
}

static void request(llcl_context_t *context, struct rank *rank)
{
    hold_up(context, rank, 1);
    send_to_other(context, ASK, ASKED);
    AWAIT(rank->told, 1);
    word_add(&rank->let_go, 1);
    AWAIT(&rank->answered, ASKED);
    tell(context, rank, 1);
}

/* Outside of the library until the long handler runs, so that the thread of the library runs it. */
static void respond(llcl_context_t *context, struct rank *rank)
{
    llcl_am_params_t am = am_to(1, BUSY, NULL, 0);
    AWAIT(&rank->asked, ASKED);
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->begun, 1);
    tell(context, rank, 1);
    CHECK_OK(llcl_wait_word(context, &rank->over, 1, -1));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = begin(context, busy);
    if (llcl_rank(context) == 0)
        request(context, rank);
    else
        respond(context, rank);
    end(context, rank);
}

TEST_MAIN_CONFIG(run, one_slot)
