/* Broken if this fails: a rank is killed (kill -9) when only a second context of the same ranks is
 * left. Ranks which find that messages do not reach it wait for it for ever in llcl_finalize of
 * that context; or ranks that send it nothing never hear of its death. The dead rank may have run
 * the hub of its node. Each rank is the victim in turn, while the others send, and while they do
 * not. Started alone it drives the rounds: duplicate_lost [rounds [seed]]; under llcl-run it is one
 * rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "kill.h"

enum { RANKS = 5, HANDLER = 5 };

static void handle(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
}

static void send_until_dead(llcl_context_t *context, uint32_t victim)
{
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    llcl_status_t status;
    message.id = HANDLER;
    message.peer = victim;
    do {
        usleep(100000);
        status = llcl_am(context, &message);
    } while (status == LLCL_OK);
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), victim = (uint32_t)(kill_seed() % RANKS);
    llcl_context_t *second = NULL;
    llcl_status_t status;
    int64_t began;
    CHECK_EQUAL(llcl_size(context), RANKS);
    CHECK_OK(llcl_context_duplicate(context, NULL, &second));
    CHECK_OK(llcl_am_register(second, HANDLER, handle, NULL));
    CHECK_OK(llcl_connect(second, NULL, 0));
    CHECK_OK(llcl_barrier(second));
    CHECK_OK(test_finalize(context));
    if (me == victim) {
        usleep(50000);
        raise(SIGKILL);
    }
    began = now_ns();
    if (getenv("LOST_SENDS"))
        send_until_dead(second, victim);
    else
        while (llcl_peer_alive(second, victim) == LLCL_OK)
            usleep(1000);
    CHECK_STATUS(llcl_peer_alive(second, victim), LLCL_ERR_PEER_DEAD);
    status = llcl_finalize(second);
    CHECK(status == LLCL_OK || status == LLCL_ERR_SYSTEM);
    printf("survivor %u: gap %lld\n", me, (long long)(now_ns() - began) / 1000);
    fflush(stdout);
}

static void set_up(int round)
{
    kill_modes_in_turn(round);
    if (round % (2 * RANKS) < RANKS)
        setenv("LOST_SENDS", "1", 1);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"duplicate_lost", RANKS, 2 * RANKS, set_up, run, 0};
    return kill_main(&plan, count, arguments);
}
