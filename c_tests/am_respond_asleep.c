/* Broken if this fails: a response waits for a slot at its requester until its own handler, which
 * goes on for long, has returned, though another thread of that rank sleeps in the library.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"

/* Answers, and returns when the requester has got the answer. */
static void busy(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    ask(message, data);
    AWAIT(rank->told, 1);
    word_add(&rank->over, 1);
}

static void request(llcl_context_t *context, struct rank *rank)
{
    hold_up(context, rank, 1);
    send_to_other(context, ASK, 1);
    sleep_ms(50); /* until all threads of the other rank sleep */
    send_to_other(context, BUSY, 1);
    sleep_ms(50); /* until the second response waits */
    word_add(&rank->let_go, 1);
    AWAIT(&rank->answered, 2);
    tell(context, rank, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = begin(context, busy);
    if (llcl_rank(context) == 0)
        request(context, rank);
    else
        CHECK_OK(llcl_wait_word(context, &rank->over, 1, -1));
    end(context, rank);
}

TEST_MAIN_CONFIG(run, one_slot)
