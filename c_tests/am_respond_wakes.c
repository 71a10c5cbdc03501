/* Broken if this fails: a rank whose responses wait for slots sleeps on when its peer has freed
 * some: the peer's handlers are held up, one response has the only slot, the others wait, and then
 * each that is taken lets the next one come.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"
#include "shared.h"

enum { ASKED = 200, ROUNDS = 2 }; /* a sleep ends after a second at the latest, the test's patience after ten */

struct rank {
    struct responses responses;
    uint64_t held, let_go;
};

/* Until it returns this rank handles nothing else. */
static void hold(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    (void)message;
    word_add(&rank->held, 1);
    AWAIT(&rank->let_go, word_get(&rank->held));
}

/* Neither waits in the library, so the thread of the library runs the handlers. */
static void hold_up(llcl_context_t *context, struct rank *rank, uint64_t round)
{
    llcl_am_params_t am = am_to(llcl_rank(context), HOLD, NULL, 0), question = am_to(1, ASK, NULL, 0);
    uint64_t i;
    POST(llcl_try_am_async(context, &am));
    AWAIT(&rank->held, round);
    for (i = 0; i < ASKED; i++)
        POST(llcl_try_am_async(context, &question));
}

/* Wakes nobody at the other rank. */
static void tell(llcl_context_t *context, const struct shared *target, uint64_t round)
{
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    write.peer = 1;
    write.source = llcl_local_address(&round);
    write.destination = remote_at(target, 1, 0);
    write.size = sizeof round;
    CHECK_OK(llcl_write(context, &write));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    struct shared target;
    uint64_t round;
    share(context, ALLOCATED, 4096, &target);
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    am_register(context, HOLD, hold, rank);
    fence(context);
    for (round = 1; round <= ROUNDS; round++) {
        if (llcl_rank(context) == 0)
            hold_up(context, rank, round);
        else
            AWAIT(&rank->responses.asked, ASKED * round);
        fence(context);
        if (llcl_rank(context) == 0) {
            word_add(&rank->let_go, 1);
            AWAIT(&rank->responses.answered, ASKED * round);
            tell(context, &target, round);
        } else {
            /* Outside of the library: a thread that waits in it would send what waits. */
            AWAIT(target.words, round);
        }
        fence(context);
    }
    share_end(context, &target);
}

TEST_MAIN_CONFIG(run, one_slot)
