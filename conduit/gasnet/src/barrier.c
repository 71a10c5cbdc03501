/* Barriers.
 *
 * The barrier is a dissemination barrier. In round k a rank writes to the rank 2^k above it the
 * number of the last barrier with which it has finished rounds 0 to k - 1. It has finished round k
 * when the rank 2^k below it has written at least the same number. The words only grow, so a team
 * may have any number of barriers under way.
 *
 * The named barrier of GASNet-1 uses the same algorithm; its words also carry the names. */
#include "internal.h"

#include <sched.h>
#include <stdlib.h>

_Atomic int teams_open;
#if defined(GASNET_PAR)
pthread_mutex_t advancing = PTHREAD_MUTEX_INITIALIZER;
#endif
static struct team *open_teams;

/* Runs the rounds of a team's barriers as far as the peers' words allow. The caller holds
 * `advancing`. */
static void advance(struct team *team) {
    uint64_t through = team->started;
    for (unsigned k = 0; k < team->steps; k++) {
        if (team->there[k].told != through) {
            /* A rank that sees the word also sees what this rank has written before the barrier,
             * and what the ranks have written whose words the load below has acquired. */
            word_tell(&team->there[k], through);
        }
        uint64_t told = atomic_load_explicit(&team->control->arrived[k].value, memory_order_acquire);
        through = told < through ? told : through;
    }
    atomic_store_explicit(&team->ended, through, memory_order_release);
}

static void named_advance(void);
static bool named_open;

void teams_progress(void) {
    see_thread(); /* a thread may make no calls but tests of events */
    if (!advance_trylock()) {
        return;
    }
    for (struct team **at = &open_teams; *at;) {
        struct team *team = *at;
        advance(team);
        collectives_advance(team);
        if (atomic_load_explicit(&team->ended, memory_order_relaxed) == team->started && !team->rounds &&
            !team->operations) {
            *at = team->next;
            team->listed = false;
            atomic_fetch_sub(&teams_open, 1);
        } else {
            at = &team->next;
        }
    }
    if (named_open) {
        named_advance();
    }
    advance_unlock();
}

/* Puts a team with a barrier or a collective under way into the list. The caller holds
 * `advancing`. */
void team_open(struct team *team) {
    if (!team->listed) {
        team->listed = true;
        team->next = open_teams;
        open_teams = team;
        atomic_fetch_add(&teams_open, 1);
    }
}

/* Takes a team that is being destroyed out of the list, where it stays for a while after its last
 * barrier. */
void team_forget(struct team *team) {
    advance_lock();
    struct team **at = &open_teams;
    while (team->listed && *at != team) {
        at = &(*at)->next;
    }
    if (team->listed) {
        *at = team->next;
        atomic_fetch_sub(&teams_open, 1);
    }
    advance_unlock();
}

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags) {
    struct team *team = team_of(tm);
    (void)flags;
    must_be_up("gex_Coll_BarrierNB");
    must_be_a_team(tm, "gex_Coll_BarrierNB");
    advance_lock();
    uint64_t number = ++team->started;
    advance(team);
    bool ended = atomic_load_explicit(&team->ended, memory_order_relaxed) == number;
    if (!ended) {
        team_open(team);
    }
    advance_unlock();
    if (ended) {
        return GEX_EVENT_INVALID;
    }
    gex_Event_t event = malloc(sizeof *event);
    if (!event) {
        fatal("gex_Coll_BarrierNB: no memory for an event");
    }
    *event = (struct gexl_event){.progress = &team->ended, .until = number};
    return event;
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags) {
    gex_Event_t event = gex_Coll_BarrierNB(tm, flags);
    if (event) {
        gexl_event_wait(event);
    }
}

void meet(struct team *team) { gex_Coll_BarrierBlocking(&team->head, 0); }

void meet_without_handlers(struct team *team) {
    gex_Event_t event = gex_Coll_BarrierNB(&team->head, 0);
    for (unsigned rounds = 1; event && gexl_event_test(event); rounds++) {
        if ((rounds & job.yield_mask) == 0) {
            sched_yield();
        }
    }
}

/* The named barrier. A word holds the name in bits 0-31, the kind of names met so far (the enum
 * below) in bits 32-33, and the barrier's number (1 to 2^30 - 1, wraps) in bits 34-63. Odd and even
 * barriers have different words, because a peer may be one barrier ahead. No peer writes to a word
 * again before this rank has seen its last value, so sums are never partial. */
enum { ANONYMOUS, NAMED, MISMATCH };
static struct {
    struct word_at there[2][STEPS];
    uint64_t number; /* the last barrier that gasnet_barrier_notify has begun */
    unsigned round;  /* its present round */
    bool told;       /* the word of that round was written */
    uint64_t met;    /* bits 0-33 of a word: the names met so far */
    bool notified, ended;
    int id, flags;
    int result_id;
    bool result_anonymous;
} named;

static uint64_t met(unsigned what, int id) { return (uint64_t)what << 32 | (what == NAMED ? (uint32_t)id : 0); }

static uint64_t join(uint64_t a, uint64_t b) {
    unsigned of_a = a >> 32 & 3, of_b = b >> 32 & 3;
    if (of_a == ANONYMOUS) {
        return b;
    }
    return of_b == ANONYMOUS || a == b ? a : met(MISMATCH, 0);
}

/* Runs the rounds as far as the peers' words allow. The caller holds `advancing`. */
static void named_advance(void) {
    uint64_t mark = (named.number % ((1u << 30) - 1) + 1) << 34;
    unsigned parity = named.number & 1;
    for (; named.round < job.world->steps; named.round++, named.told = false) {
        if (!named.told) {
            word_tell(&named.there[parity][named.round], mark | named.met);
            named.told = true;
        }
        uint64_t word = atomic_load_explicit(&job.world->control->named[parity][named.round].value,
                                             memory_order_acquire);
        if (word >> 34 != mark >> 34) {
            return;
        }
        named.met = join(named.met, word & (((uint64_t)1 << 34) - 1));
    }
    named.ended = true;
    named_open = false;
    atomic_fetch_sub(&teams_open, 1);
}

void barrier_begin_world(void) {
    for (unsigned k = 0; k < job.world->steps; k++) {
        const struct control_at *peer = &job.controls[(job.rank + (1u << k)) % job.size];
        for (unsigned parity = 0; parity < 2; parity++) {
            named.there[parity][k] = word_find(peer, offsetof(struct control, named) +
                                                         (parity * STEPS + k) * sizeof(struct word));
        }
    }
}

void gasnet_barrier_notify(int id, int flags) {
    must_be_up("gasnet_barrier_notify");
    if (named.notified) {
        fatal("gasnet_barrier_notify twice without gasnet_barrier_wait");
    }
    advance_lock();
    unsigned what = flags & GASNET_BARRIERFLAG_MISMATCH ? MISMATCH
                    : flags & GASNET_BARRIERFLAG_ANONYMOUS ? ANONYMOUS : NAMED;
    named.number++;
    named.round = 0;
    named.told = false;
    named.met = met(what, id);
    named.id = id;
    named.flags = flags;
    named.ended = false;
    named.notified = true;
    named_open = true;
    atomic_fetch_add(&teams_open, 1);
    named_advance();
    advance_unlock();
}

static bool named_ended(void) {
    advance_lock();
    if (named_open) {
        named_advance();
    }
    bool ended = named.ended;
    advance_unlock();
    return ended;
}

/* The code of gasnet_barrier_wait and of a successful gasnet_barrier_try. */
static int named_result(int id, int flags) {
    unsigned what = named.met >> 32 & 3;
    /* A wait that gives a name must give the one that the ranks have notified. */
    bool unnamed = flags & GASNET_BARRIERFLAG_ANONYMOUS;
    bool own = flags & GASNET_BARRIERFLAG_MISMATCH || (!unnamed && what == NAMED && id != (int)(uint32_t)named.met);
    named.notified = false;
    named.result_anonymous = what != NAMED;
    named.result_id = (int)(uint32_t)named.met;
    return what == MISMATCH || own ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
}

static void must_be_notified(const char *call) {
    must_be_up(call);
    if (!named.notified) {
        fatal("%s without gasnet_barrier_notify", call);
    }
}

int gasnet_barrier_wait(int id, int flags) {
    must_be_notified("gasnet_barrier_wait");
    GASNET_BLOCKUNTIL(named_ended());
    return named_result(id, flags);
}

int gasnet_barrier_try(int id, int flags) {
    must_be_notified("gasnet_barrier_try");
    gasnet_AMPoll();
    return named_ended() ? named_result(id, flags) : GASNET_ERR_NOT_READY;
}

int gasnet_barrier_result(int *id) {
    if (named.result_anonymous) {
        return 1;
    }
    *id = named.result_id;
    return 0;
}
