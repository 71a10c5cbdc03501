/* Broken if this fails: a response waits for a slot at its requester until its own handler, which
 * goes on for long, has returned, though another thread of that rank sleeps in the library.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"
#include "shared.h"

struct rank {
    struct responses responses;
    uint64_t held, let_go, over;
    const uint64_t *told; /* by the requester */
};

/* Until it returns the requester takes no response, so the first one has the slot and the second
 * waits. */
static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->held, 1);
    AWAIT(&rank->let_go, 1);
}

/* Answers, and returns when the requester has got the answer. */
static void busy(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    ask(message, data);
    AWAIT(rank->told, 1);
    word_add(&rank->over, 1);
}

static void request(llcl_context_t *context, struct rank *rank, const struct shared *target)
{
    llcl_am_params_t am = am_to(0, HOLD, NULL, 0), question = am_to(1, ASK, NULL, 0);
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    uint64_t one = 1;
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->held, 1);
    POST(llcl_try_am_async(context, &question));
    sleep_ms(50); /* until all threads of the other rank sleep */
    question.id = BUSY;
    POST(llcl_try_am_async(context, &question));
    sleep_ms(50); /* until the second response waits */
    word_add(&rank->let_go, 1);
    AWAIT(&rank->responses.answered, 2);
    write.peer = 1;
    write.source = llcl_local_address(&one);
    write.destination = remote_at(target, 1, 0);
    write.size = sizeof one;
    CHECK_OK(llcl_write(context, &write));
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
    if (llcl_rank(context) == 0) {
        request(context, rank, &target);
    } else {
        CHECK_OK(llcl_wait_word(context, &rank->over, 1, -1));
    }
    fence(context);
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, one_slot)
