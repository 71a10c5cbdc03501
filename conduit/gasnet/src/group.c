/* Groups of accesses to segments that this process does not map: the accesses of one NB call,
 * those of an access region, or a thread's NBI accesses outside of regions. libllcl adds 1 to a
 * word of the group when an access ends. The group has ended when each word has reached the
 * number of accesses that were begun. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(GEX_EC_PUT == (1 << PUTS | 1 << LOCAL) && GEX_EC_LC == 1 << LOCAL && GEX_EC_GET == 1 << GETS &&
                   GEX_EC_RMW == 1 << RMWS,
               "a word for each category of events");

/* `root` comes first, so that free(root) frees the group. `has_event`: an event stands for all
 * accesses of the group, so PUTS counts all of them. */
struct group {
    struct gexl_event root, leaves[2];
    bool has_event;
    uint64_t begun[WORDS];
    _Atomic uint64_t ended[WORDS];
};

struct group *group_new(bool has_event) {
    struct group *group = calloc(1, sizeof *group);
    if (!group) {
        fatal("a non-blocking access: no memory");
    }
    group->has_event = has_event;
    return group;
}

static unsigned word_of(const struct group *group, unsigned word) {
    return group->has_event && word != LOCAL ? PUTS : word;
}

bool group_has_ended(const struct group *group, unsigned word) {
    uint64_t ended = atomic_load_explicit(&group->ended[word], memory_order_acquire);
    if (ended & LLCL_WORD_FAILED) {
        access_failed();
    }
    return ended >= group->begun[word];
}

/* The completion of an access that begins. */
static llcl_completion_t counted(struct group *group, unsigned word) {
    word = word_of(group, word);
    group->begun[word]++;
    return llcl_add_on((uint64_t *)&group->ended[word]);
}

/* Returns whether libllcl has accepted an access; if not, it was not begun. An access at the end of
 * this rank, which libllcl refuses, counts as ended. */
static bool accepted(llcl_status_t status, struct group *group, unsigned word, bool counts_local) {
    if (status != LLCL_OK) {
        group->begun[word_of(group, word)]--;
        group->begun[LOCAL] -= counts_local;
    }
    if (status > 0) {
        return false;
    }
    must(status, "an access to a segment that is not mapped here");
    return true;
}

gex_Event_t group_event(struct group *group) {
    if (group_has_ended(group, PUTS) && group_has_ended(group, LOCAL)) {
        free(group);
        return GEX_EVENT_INVALID;
    }
    group->root = (struct gexl_event){&group->ended[PUTS], group->begun[PUTS], group->leaves, NULL, false};
    /* Without a count of local completions the source is the client's again when all has ended. */
    unsigned local = group->begun[LOCAL] ? LOCAL : PUTS;
    group->leaves[OF_LOCAL] =
        (struct gexl_event){&group->ended[local], group->begun[local], NULL, &group->root, false};
    group->leaves[OF_ALL] = (struct gexl_event){&group->ended[PUTS], group->begun[PUTS], NULL, &group->root, false};
    return &group->root;
}

gex_Event_t group_event_if(bool begun, struct group *group) {
    if (!begun) {
        free(group);
        return GEX_EVENT_NO_OP;
    }
    return group_event(group);
}

/* libllcl copies the bytes of a small put. */
bool group_put(struct group *group, gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size,
               enum local local, gex_Flags_t flags) {
    bool immediate = flags & GEX_FLAG_IMMEDIATE;
    if (!size && rank < tm->size) {
        return true;
    }
    struct far_place to = find(tm, rank, destination, size);
    if (to.here) {
        memcpy(to.here, source, size);
        return true;
    }
    if (size <= job.small && local != AT_END) {
        llcl_write_small_params_t params = LLCL_WRITE_SMALL_PARAMS_INIT;
        params.peer = to.jobrank;
        params.source = source;
        params.destination = to.remote;
        params.size = size;
        params.on_complete = counted(group, PUTS);
        return accepted(immediate ? llcl_try_write_small_async(job.context, &params)
                                  : llcl_write_small_async(job.context, &params), group, PUTS, false);
    }
    if (local == AT_RETURN) {
        gexl_put(tm, rank, destination, source, size);
        return true;
    }
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    params.peer = to.jobrank;
    params.source = llcl_local_address(source);
    params.destination = to.remote;
    params.size = size;
    params.on_complete = counted(group, PUTS);
    if (local == WHEN_COUNTED) {
        params.on_local = counted(group, LOCAL);
    }
    return accepted(immediate ? llcl_try_write_async(job.context, &params) : llcl_write_async(job.context, &params),
                    group, PUTS, local == WHEN_COUNTED);
}

bool group_get(struct group *group, gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size,
               gex_Flags_t flags) {
    if (!size && rank < tm->size) {
        return true;
    }
    struct far_place from = find(tm, rank, source, size);
    if (from.here) {
        memcpy(destination, from.here, size);
        return true;
    }
    llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
    params.peer = from.jobrank;
    params.source = from.remote;
    params.destination = llcl_local_address(destination);
    params.size = size;
    params.on_complete = counted(group, GETS);
    return accepted(flags & GEX_FLAG_IMMEDIATE ? llcl_try_read_async(job.context, &params)
                                               : llcl_read_async(job.context, &params), group, GETS, false);
}

bool group_atomic(struct group *group, llcl_atomic_params_t *params, unsigned word, gex_Flags_t flags) {
    params->on_complete = counted(group, word);
    return accepted(flags & GEX_FLAG_IMMEDIATE ? llcl_try_atomic_async(job.context, params)
                                               : llcl_atomic_async(job.context, params), group, word, false);
}

bool group_is_over(const struct group *group) {
    bool over = true;
    for (unsigned word = 0; word < WORDS; word++) {
        uint64_t ended = atomic_load_explicit(&group->ended[word], memory_order_acquire);
        over &= (ended & ~LLCL_WORD_FAILED) >= group->begun[word];
    }
    return over;
}
