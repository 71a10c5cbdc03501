/* Rounds with a kill (kill.h) for active messages. The rounds have different execution modes,
 * policies and numbers of slots. */
#ifndef AM_KILL_H
#define AM_KILL_H
#include "am.h"
#include "kill.h"

static inline void am_kill_set_up(int round)
{
    static const char *const modes[] = {"auto", "offload", "direct"};
    static const char *const policies[] = {"acquire", "limit", "distributed"};
    static const char *const slots[] = {"1", "4", "64"};
    /* Every other round is in auto mode, where the sending threads write the slots. */
    setenv("LLCL_EXECUTION", modes[round % 2 ? 0 : round / 2 % 3], 1);
    setenv("LLCL_AM_POLICY", policies[round % 3], 1);
    setenv("LLCL_AM_SLOTS", slots[round / 3 % 3], 1);
    setenv("LLCL_AM_MEDIUM", round % 4 < 2 ? "65536" : "4096", 1);
}

#endif
