/* NB and NBI accesses to segments that this process does not map, and access regions. */
#include "internal.h"

#include <stdlib.h>

gex_Event_t gexl_put_nb(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size,
                        gex_Event_t *lc, gex_Flags_t flags) {
    struct group *group = group_new(true);
    bool asks = (uintptr_t)lc > (uintptr_t)GEX_EVENT_GROUP; /* for an event of the local completion */
    enum local local = lc == GEX_EVENT_NOW ? AT_RETURN : asks ? WHEN_COUNTED : AT_END;
    bool begun = group_put(group, tm, rank, destination, source, size, local, flags);
    bool leaf = asks && begun && !group_has_ended(group, LOCAL);
    gex_Event_t root = group_event_if(begun, group);
    if (asks) {
        *lc = leaf && root ? gex_Event_QueryLeaf(root, GEX_EC_LC) : GEX_EVENT_INVALID;
    }
    return root;
}

gex_Event_t gexl_get_nb(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size,
                        gex_Flags_t flags) {
    struct group *group = group_new(true);
    return group_event_if(group_get(group, tm, destination, rank, source, size, flags), group);
}

/* NBI: the group of the thread, or of its access region. The thread makes each of them with its
 * first access that is not mapped. Both are on the heap, since accesses may outlive the thread. */
static __thread struct group *of_thread, *of_region;
static __thread bool region_begun;

struct group *nbi_group(void) {
    struct group **group = region_begun ? &of_region : &of_thread;
    if (!*group) {
        *group = group_new(region_begun);
    }
    return *group;
}

int gexl_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size, gex_Event_t *lc,
                 gex_Flags_t flags) {
    enum local local = lc == GEX_EVENT_DEFER ? AT_END : lc == GEX_EVENT_GROUP ? WHEN_COUNTED : AT_RETURN;
    return !group_put(nbi_group(), tm, rank, destination, source, size, local, flags);
}

int gexl_get_nbi(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size, gex_Flags_t flags) {
    return !group_get(nbi_group(), tm, destination, rank, source, size, flags);
}

int gex_NBI_Test(gex_EC_t mask, gex_Flags_t flags) {
    (void)flags;
    for (unsigned word = 0; of_thread && word < WORDS; word++) {
        if (mask & 1u << word && !group_has_ended(of_thread, word)) {
            return GASNET_ERR_NOT_READY;
        }
    }
    return GASNET_OK;
}

void gex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags) {
    unsigned rounds = 0;
    if (gex_NBI_Test(mask, flags) == GASNET_OK) {
        gasnet_AMPoll();
    }
    while (gex_NBI_Test(mask, flags) != GASNET_OK) {
        gexl_pause(&rounds);
    }
}

void gex_NBI_BeginAccessRegion(gex_Flags_t flags) {
    (void)flags;
    if (region_begun) {
        fatal("an access region inside another one of the same thread");
    }
    region_begun = true;
}

gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags) {
    struct group *group = of_region;
    (void)flags;
    if (!region_begun) {
        fatal("the end of an access region that this thread has not begun");
    }
    region_begun = false;
    of_region = NULL;
    return group ? group_event(group) : GEX_EVENT_INVALID;
}

/* Words that libllcl may still change stay. */
static void drop(struct group **group) {
    if (*group && group_is_over(*group)) {
        free(*group);
    }
    *group = NULL;
}

void nonblocking_thread_ends(void) {
    drop(&of_thread);
    drop(&of_region);
    region_begun = false;
}
