/* Events. A root event belongs to an access, a barrier or a collective. Its leaves lie in its
 * memory. The test or wait that finds the root ended frees this memory. */
#include "internal.h"

#include <stdlib.h>

void access_failed(void) {
    if (!is_at_end()) {
        fatal("an access to a segment that is not mapped here has failed");
    }
}

static bool has_come(const struct gexl_event *event) {
    uint64_t progress = atomic_load_explicit(event->progress, memory_order_acquire);
    if (progress & LLCL_WORD_FAILED) {
        access_failed();
    }
    return progress >= event->until;
}

/* The root of accesses also waits for their local completion: libllcl may still change that
 * word. */
static bool has_ended(const struct gexl_event *event) {
    return has_come(event) && (!event->leaves || has_come(&event->leaves[OF_LOCAL]));
}

static void must_be_event(gex_Event_t event) {
    if (event == GEX_EVENT_NO_OP) {
        fatal("GEX_EVENT_NO_OP was given to a test or a wait");
    }
}

static void retire(gex_Event_t event) {
    if (!event->root) {
        free(event);
    }
}

int gexl_event_test(gex_Event_t event) {
    must_be_event(event);
    if (!has_ended(event)) {
        teams_progress();
    }
    if (!has_ended(event)) {
        return GASNET_ERR_NOT_READY;
    }
    retire(event);
    return GASNET_OK;
}

void gexl_event_wait(gex_Event_t event) {
    unsigned rounds = 0;
    must_be_event(event);
    do {
        gexl_pause(&rounds); /* its poll advances all teams, and runs handlers even if the event has ended */
    } while (!has_ended(event));
    retire(event);
}

/* Retires the events that have ended. Counts them in `ended`, and the others in `open`. The
 * roots are asked first and freed last, so a leaf in the array has ended if its root has. */
static void sweep(gex_Event_t *events, size_t count, size_t *ended, size_t *open) {
    *ended = *open = 0;
    teams_progress();
    for (size_t i = 0; i < count; i++) {
        must_be_event(events[i]);
        if (events[i] && !events[i]->root) {
            events[i]->ended = has_ended(events[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i] && events[i]->root && has_ended(events[i])) {
            events[i] = GEX_EVENT_INVALID;
            ++*ended;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i] && events[i]->ended) {
            free(events[i]);
            events[i] = GEX_EVENT_INVALID;
            ++*ended;
        } else if (events[i]) {
            ++*open;
        }
    }
}

int gex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags) {
    size_t ended, open;
    (void)flags;
    sweep(events, count, &ended, &open);
    return ended || !open ? GASNET_OK : GASNET_ERR_NOT_READY;
}
int gex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags) {
    size_t ended, open;
    (void)flags;
    sweep(events, count, &ended, &open);
    return open ? GASNET_ERR_NOT_READY : GASNET_OK;
}
void gex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags) {
    gasnet_AMPoll();
    GASNET_BLOCKUNTIL(gex_Event_TestSome(events, count, flags) == GASNET_OK);
}
void gex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags) {
    gasnet_AMPoll();
    GASNET_BLOCKUNTIL(gex_Event_TestAll(events, count, flags) == GASNET_OK);
}

gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category) {
    must_be_event(root);
    if (!root || !root->leaves) {
        return GEX_EVENT_INVALID;
    }
    return &root->leaves[category == GEX_EC_LC ? OF_LOCAL : OF_ALL];
}
