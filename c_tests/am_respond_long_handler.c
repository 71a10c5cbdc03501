/* Broken if this fails: responses that wait for slots at their requester wait until a long handler
 * of their own rank has returned, though another thread of that rank is in the library.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"
#include "shared.h"

enum { ASKED = 20 };

struct rank {
    struct responses responses;
    uint64_t held, let_go, begun, over;
    const uint64_t *told; /* by the other rank */
};

/* Until it returns the requester takes no response, so one has the slot and the others wait. */
static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->held, 1);
    AWAIT(&rank->let_go, 1);
}

/* Returns when the requester has got all responses. */
static void busy(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->begun, 1);
    AWAIT(rank->told, 1);
    word_add(&rank->over, 1);
}

static void tell(llcl_context_t *context, const struct shared *target)
{
    uint64_t one = 1;
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    write.peer = 1 - llcl_rank(context);
    write.source = llcl_local_address(&one);
    write.destination = remote_at(target, write.peer, 0);
    write.size = sizeof one;
    CHECK_OK(llcl_write(context, &write));
}

static void request(llcl_context_t *context, struct rank *rank, const struct shared *target)
{
    llcl_am_params_t am = am_to(0, HOLD, NULL, 0), question = am_to(1, ASK, NULL, 0);
    uint64_t i;
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->held, 1);
    for (i = 0; i < ASKED; i++)
        POST(llcl_try_am_async(context, &question));
    AWAIT(rank->told, 1);
    word_add(&rank->let_go, 1);
    AWAIT(&rank->responses.answered, ASKED);
    tell(context, target);
}

/* Outside of the library until the long handler runs, so that the thread of the library runs it. */
static void respond(llcl_context_t *context, struct rank *rank, const struct shared *target)
{
    llcl_am_params_t am = am_to(1, BUSY, NULL, 0);
    AWAIT(&rank->responses.asked, ASKED);
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->begun, 1);
    tell(context, target);
    CHECK_OK(llcl_wait_word(context, &rank->over, 1, -1));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    struct shared target;
    share(context, ALLOCATED, 4096, &target);
    rank->told = target.words;
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    am_register(context, HOLD, hold, rank);
    am_register(context, BUSY, busy, rank);
    fence(context);
    if (llcl_rank(context) == 0)
        request(context, rank, &target);
    else
        respond(context, rank, &target);
    fence(context);
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, one_slot)
