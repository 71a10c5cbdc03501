/* gasnet_coll_*: the collectives that GASNet-1 offered as prototypes, with one image for each rank.
 *
 * An operation copies a rank's data in after the rank has called, and out before its event ends.
 * That is what the flags MYSYNC ask for, and more than NOSYNC. ALLSYNC needs that all ranks have
 * called before, or that all ranks have their data afterwards: a meeting in front of the operation,
 * or behind it. */
#include "rounds.h"

#define IN (GASNET_COLL_IN_NOSYNC | GASNET_COLL_IN_MYSYNC | GASNET_COLL_IN_ALLSYNC)
#define OUT (GASNET_COLL_OUT_NOSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_OUT_ALLSYNC)
#define WITHOUT_MEANING_HERE                                                                                           \
    (GASNET_COLL_LOCAL | GASNET_COLL_FIXED_THREADS_PER_NODE | GASNET_COLL_DST_IN_SEGMENT | GASNET_COLL_SRC_IN_SEGMENT \
     | GASNET_COLL_DISABLE_AUTOTUNE | GASNET_COLL_NO_IMAGES)

gex_TM_t gexl_team_all(void) { return &job.world->head; }

static bool is_one_bit(int bits) { return bits && !(bits & (bits - 1)); }

static gex_Event_t meet_nb(gex_TM_t team, bool alone) {
    struct operation wanted = {.wish = {MEET, 0, LLCL_TYPE_U8, 0, 1, 1}, .alone = alone};
    return operation_begin(team, &wanted);
}

static gex_Event_t move(const char *call, gex_TM_t team, enum kind kind, gasnet_image_t root, void *dst,
                        const void *src, size_t size, int flags) {
    must_be_up(call);
    must_be_a_team(team, call);
    if (root >= team->size) {
        fatal("%s: image %u of a team of %u", call, root, team->size);
    }
    if (!is_one_bit(flags & IN) || !is_one_bit(flags & OUT) || flags & ~(IN | OUT | WITHOUT_MEANING_HERE)) {
        fatal("%s: flags %#x; expected one of GASNET_COLL_IN_*SYNC, one of GASNET_COLL_OUT_*SYNC, and possibly "
              "GASNET_COLL_LOCAL, _SRC_IN_SEGMENT, _DST_IN_SEGMENT", call, (unsigned)flags);
    }
    bool is_root = team->rank == root, meets_after = flags & GASNET_COLL_OUT_ALLSYNC;
    struct operation wanted = {.wish = {kind, root, LLCL_TYPE_U8, 0, 1, size}, .stride = size, .alone = meets_after};
    wanted.src = is_root || (kind != BROADCAST && kind != SCATTER) ? src : NULL;
    wanted.dst = is_root || kind != GATHER ? dst : NULL;
    if (flags & GASNET_COLL_IN_ALLSYNC) {
        meet_nb(team, true);
    }
    gex_Event_t moved = size ? operation_begin(team, &wanted) : GEX_EVENT_INVALID;
    return meets_after ? meet_nb(team, false) : moved;
}

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
                                              size_t size, int flags) {
    return move("gasnet_coll_broadcast", team, BROADCAST, root, dst, src, size, flags);
}
gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t root, void *src,
                                            size_t size, int flags) {
    return move("gasnet_coll_scatter", team, SCATTER, root, dst, src, size, flags);
}
gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t root, void *dst, void *src,
                                           size_t size, int flags) {
    return move("gasnet_coll_gather", team, GATHER, root, dst, src, size, flags);
}
gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src, size_t size,
                                               int flags) {
    return move("gasnet_coll_gather_all", team, GATHER_ALL, 0, dst, src, size, flags);
}
gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src, size_t size,
                                             int flags) {
    return move("gasnet_coll_exchange", team, EXCHANGE, 0, dst, src, size, flags);
}

static void must_be_all(const char *call, gasnet_team_handle_t team) {
    must_be_up(call);
    if (team != &job.world->head) {
        fatal("%s: a team other than GASNET_TEAM_ALL; gex_Coll_BarrierNB takes it", call);
    }
}

void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags) {
    must_be_all("gasnet_coll_barrier_notify", team);
    gasnet_barrier_notify(id, flags);
}
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags) {
    must_be_all("gasnet_coll_barrier_wait", team);
    return gasnet_barrier_wait(id, flags);
}
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags) {
    must_be_all("gasnet_coll_barrier_try", team);
    return gasnet_barrier_try(id, flags);
}
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags) {
    gasnet_coll_barrier_notify(team, id, flags);
    return gasnet_barrier_wait(id, flags);
}
int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id) {
    must_be_all("gasnet_coll_barrier_result", team);
    return gasnet_barrier_result(id);
}
