/* Broken if this fails: when one of five ranks is killed (kill -9), the other four cannot make a
 * team of their own by llcl_team_create, that team's allreduce, split or allgather gives a wrong
 * result or hangs, the dead rank's teams do not answer LLCL_ERR_PEER_DEAD, or survivors that hear
 * of the death at different times never meet. Rounds at random moments, over the execution modes;
 * in every second round a plan of all was made before. Started alone it drives the rounds:
 * team_survivors [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "coll.h"
#include "kill.h"

#define RANKS 5u

/* Until every survivor has given the same list; the first lists may still have the dead rank. */
static llcl_team_t *team_of_the_living(llcl_context_t *context, uint32_t victim)
{
    int64_t give_up = now_ns() + 5 * SECOND;
    uint32_t ranks[RANKS], n, r;
    llcl_team_t *team = NULL;
    llcl_status_t status;
    do {
        CHECK(now_ns() < give_up);
        for (n = r = 0; r < RANKS; r++)
            if (llcl_peer_alive(context, RANKS - 1 - r) == LLCL_OK)
                ranks[n++] = RANKS - 1 - r;
        status = llcl_team_create(context, ranks, n, &team);
        CHECK(status == LLCL_OK || team == NULL);
    } while (status == LLCL_ERR_PEER_DEAD);
    CHECK_OK(status);
    CHECK_EQUAL(llcl_team_size(team), RANKS - 1);
    for (n = r = 0; r < RANKS; r++) {
        uint32_t peer = RANKS - 1 - r;
        CHECK_EQUAL(llcl_team_find(team, peer), peer == victim ? UINT32_MAX : n);
        if (peer != victim)
            CHECK_EQUAL(llcl_team_peer(team, n++), peer);
    }
    CHECK_EQUAL(llcl_team_peer(team, llcl_team_rank(team)), llcl_rank(context));
    return team;
}

/* What the living do together: a sum, a split by halves, and what llcl_allgather_bytes would have
 * done. */
static void work(llcl_context_t *context, llcl_team_t *team, uint32_t victim)
{
    uint32_t me = llcl_rank(context), in_team = llcl_team_rank(team), i;
    llcl_coll_params_t params = {0};
    struct shared memory;
    llcl_team_t *half = NULL;
    region_make(context, ALLOCATED, 4096, &memory);
    memory.words[0] = UINT64_C(1) << (8 * me);
    params.team = team;
    params.send = llcl_region_local(memory.region, 0);
    params.receive = llcl_region_local(memory.region, 64);
    params.count = 1;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    CHECK_OK(llcl_allreduce(&params));
    CHECK_EQUAL(memory.words[8], UINT64_C(0x0101010101) & ~(UINT64_C(1) << (8 * victim)));
    CHECK_OK(llcl_team_split(team, in_team % 2, 0, &half));
    CHECK_EQUAL(llcl_team_size(half), 2);
    CHECK_OK(llcl_team_barrier(half));
    CHECK_OK(llcl_team_free(half));
    CHECK_OK(llcl_allgather(&params));
    for (i = 0; i < RANKS - 1; i++)
        CHECK_EQUAL(memory.words[8 + i], UINT64_C(1) << (8 * llcl_team_peer(team, i)));
    CHECK_OK(llcl_team_barrier(team));
    region_drop(&memory);
}

static void run(llcl_context_t *context)
{
    uint64_t seed = kill_seed();
    uint32_t me = llcl_rank(context), victim = (uint32_t)(seed % RANKS);
    llcl_team_t *world = NULL, *team, *other = NULL;
    llcl_status_t status;
    int64_t began;
    CHECK_EQUAL(llcl_size(context), RANKS);
    CHECK_OK(llcl_team_world(context, &world));
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (seed / RANKS % 2) {
        /* Some may still be in it when the victim is killed. */
        status = llcl_team_barrier(world);
        CHECK(status == LLCL_OK || status == LLCL_ERR_PEER_DEAD);
    }
    kill_by_next(context, victim, (int64_t)(seed / RANKS % 3000) * 1000);
    began = now_ns();
    team = team_of_the_living(context, victim);
    printf("survivor %u: gap %lld\n", me, (long long)(now_ns() - began) / 1000);
    fflush(stdout);
    work(context, team, victim);
    CHECK_STATUS(llcl_team_split(world, 0, 0, &other), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_team_barrier(world), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 0, NULL), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_team_free(team));
    /* The list of the living makes a second team, too. */
    team = team_of_the_living(context, victim);
    work(context, team, victim);
    CHECK_OK(llcl_team_free(team));
    CHECK_OK(test_finalize(context));
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"team_survivors", RANKS, 12, kill_modes_in_turn, run, 0};
    return kill_main(&plan, count, arguments);
}
