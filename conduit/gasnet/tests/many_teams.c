/* Do 210 live teams work, each with collectives of two shapes? The conduit needs 1,050 regions of
 * libllcl for them, which has 1,024 unless a program asks for more. */
#include "t.h"

#define TEAMS 210

int main(void) {
    static gex_TM_t teams[TEAMS];
    begin(NULL, 0);
    for (int i = 0; i < TEAMS; i++) {
        gex_TM_Split(&teams[i], tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        for (int use = 0; use < 4; use++) {
            uint64_t mine[2] = {1, (uint64_t)i}, sum[2] = {0, 0};
            unsigned count = 1 + use % 2;
            gex_Event_Wait(gex_Coll_ReduceToAllNB(teams[i], sum, mine, GEX_DT_U64, 8, count, GEX_OP_ADD, NULL, NULL, 0));
            EQUAL(sum[0], all);
            EQUAL(sum[1], use % 2 ? all * (unsigned)i : 0);
        }
    }
    for (int i = 0; i < TEAMS; i++) {
        gex_TM_Destroy(teams[i], NULL, 0);
    }
    end();
}
