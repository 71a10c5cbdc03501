/* Do new teams have the ranks and the order that were asked for? Do several barriers at once, of
 * several teams, not affect each other? Does a barrier of each team hold its members? */
#include "t.h"

/* No member of a team passes a barrier before all have entered it: each member in turn enters late,
 * after it has set a word at all others. */
static void late_members(gex_TM_t team) {
    unsigned rank = gex_TM_QueryRank(team), size = gex_TM_QuerySize(team);
    volatile uint64_t *told = (uint64_t *)(void *)(base_of(me) + 64);
    for (unsigned late = 0; late < all; late++) {
        *told = 0;
        barrier();
        if (rank == late % size) {
            usleep(5000);
            for (unsigned r = 0; r < size; r++) {
                char *word = base_of(gex_TM_TranslateRankToJobrank(team, r)) + 64;
                gex_RMA_PutBlockingVal(team, r, word, late + 1, 8, 0);
            }
        }
        gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
        EQUAL(*told, late + 1);
        barrier();
    }
}

int main(void) {
    gex_TM_t half, reverse, listed = GEX_TM_INVALID;
    gex_Event_t events[24];
    gex_EP_Location_t members[64];
    begin(NULL, 0);
    gex_TM_Split(&half, tm, (int)me % 2, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    EQUAL(gex_TM_QuerySize(half), (all + 1 - me % 2) / 2);
    EQUAL(gex_TM_QueryRank(half), me / 2);
    EQUAL(gex_TM_TranslateRankToJobrank(half, 0), me % 2);
    EQUAL(gex_TM_TranslateJobrankToRank(half, me), me / 2);
    gex_TM_Split(&reverse, tm, 5, -(int)me, base_of(me), 64, 0);
    EQUAL(gex_TM_QueryRank(reverse), all - 1 - me);
    gex_TM_Split(me ? &listed : NULL, tm, 1, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (me) {
        EQUAL(gex_TM_QuerySize(listed), all - 1);
        gex_TM_Destroy(listed, NULL, 0);
    }
    for (unsigned r = 0; r < all; r++) {
        members[r] = (gex_EP_Location_t){(r + 1) % all, 0};
    }
    gex_TM_Create(&listed, 1, tm, members, all, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    EQUAL(gex_TM_QueryRank(listed), (me + all - 1) % all);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 24; i++) {
            gex_TM_t teams[] = {tm, half, reverse, listed};
            events[i] = gex_Coll_BarrierNB(teams[i % 4], 0);
        }
        gex_Event_WaitAll(events, 24, 0);
    }
    late_members(tm);
    late_members(half);
    late_members(reverse);
    late_members(listed);
    CHECK(gex_TM_QueryClient(listed) == client && gex_TM_QueryEP(listed) == ep);
    gex_Memvec_t scratch = {NULL, 0};
    EQUAL(gex_TM_Destroy(reverse, &scratch, 0), 1);
    CHECK(scratch.gex_addr == base_of(me) && scratch.gex_len == 64);
    gex_TM_Destroy(half, NULL, 0);
    gex_TM_Destroy(listed, NULL, 0);
    CHECK(gex_TM_Pair(ep, 0) == gex_TM_Pair(ep, 0) && gex_TM_Pair(ep, 0) != tm);
    gex_RMA_PutBlockingVal(gex_TM_Pair(ep, 0), (me + 1) % all, base_of((me + 1) % all), 77, 8, 0);
    barrier();
    EQUAL(*(uint64_t *)base_of(me), 77);
    end();
}
