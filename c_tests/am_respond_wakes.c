/* Broken if this fails: a rank whose responses wait for slots sleeps on when its peer has freed
 * some: the peer's handlers are held up, one response has the only slot, the others wait, and then
 * each that is taken lets the next one come.
 * modes: auto
 * threads: yes
 */
#include "am_responses.h"

enum { ASKED = 200, ROUNDS = 2 }; /* a sleep ends after a second at the latest, the test's patience after ten */

static void run(llcl_context_t *context)
{
    struct rank *rank = begin(context, NULL);
    uint64_t round;
    for (round = 1; round <= ROUNDS; round++) {
        if (llcl_rank(context) == 0) {
            hold_up(context, rank, round);
            send_to_other(context, ASK, ASKED);
        } else {
            AWAIT(&rank->asked, ASKED * round);
        }
        fence(context);
        if (llcl_rank(context) == 0) {
            word_add(&rank->let_go, 1);
            AWAIT(&rank->answered, ASKED * round);
            tell(context, rank, round);
        } else {
            /* Outside of the library: a thread that waits in it would send what waits. */
            AWAIT(rank->told, round);
        }
        fence(context);
    }
    end(context, rank);
}

TEST_MAIN_CONFIG(run, one_slot)
