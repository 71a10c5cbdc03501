/* Broken if this fails: a rank is killed (kill -9), and another one does not learn it in a second
 * context of the same ranks: it waits there in llcl_barrier, in llcl_allgather_bytes or in
 * llcl_finalize for ever. The dead rank may have run the hub of its node. Rounds over the
 * execution modes, each rank being the victim in turn; in every second round the context between
 * the first one and that one has ended before. Started alone it drives the rounds:
 * duplicate_kill [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "kill.h"

#define RANKS 5u

static void ends(llcl_context_t *context, uint32_t victim)
{
    int64_t give_up = now_ns() + TEST_PATIENCE_NS;
    llcl_status_t status;
    CHECK_STATUS(llcl_barrier(context), LLCL_ERR_PEER_DEAD);
    /* Another rank may have told the barrier's end before the death is known here. */
    while (llcl_peer_alive(context, victim) == LLCL_OK && now_ns() < give_up)
        usleep(1000);
    CHECK_STATUS(llcl_peer_alive(context, victim), LLCL_ERR_PEER_DEAD);
    /* Where the hub has died with the victim, nobody is left who could answer. */
    status = llcl_allgather_bytes(context, NULL, 0, NULL);
    CHECK(status == LLCL_ERR_PEER_DEAD || status == LLCL_ERR_SYSTEM);
    status = llcl_finalize(context);
    CHECK(status == LLCL_OK || status == LLCL_ERR_SYSTEM);
}

static void run(llcl_context_t *context)
{
    uint64_t seed = kill_seed();
    uint32_t me = llcl_rank(context), victim = (uint32_t)(seed % RANKS);
    int middle_lives = seed / RANKS % 2 == 0;
    llcl_context_t *second = NULL, *third = NULL;
    int64_t began;
    CHECK_EQUAL(llcl_size(context), RANKS);
    CHECK_OK(llcl_context_duplicate(context, NULL, &second));
    CHECK_OK(llcl_context_duplicate(second, NULL, &third));
    CHECK_OK(llcl_barrier(second));
    CHECK_OK(llcl_barrier(third));
    if (!middle_lives)
        CHECK_OK(llcl_finalize(second));
    /* Nobody uses the duplicates any more, so no frame of theirs is refused. */
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    kill_by_next(context, victim, (int64_t)(seed / RANKS % 300) * 1000000);
    began = now_ns();
    if (middle_lives)
        ends(second, victim);
    ends(third, victim);
    printf("survivor %u: gap %lld\n", me, (long long)(now_ns() - began) / 1000);
    fflush(stdout);
    CHECK_OK(test_finalize(context));
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"duplicate_kill", RANKS, 10, kill_modes_in_turn, run, 0};
    return kill_main(&plan, count, arguments);
}
