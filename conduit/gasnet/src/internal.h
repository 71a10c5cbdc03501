/* What the parts of the conduit know of each other. */
#ifndef GEXL_INTERNAL_H
#define GEXL_INTERNAL_H

#include <llcl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gasnet.h"

/* Rounds of a barrier: enough for GASNET_MAXNODES. */
#define STEPS 12
#define LINE 64
/* For gex_nargs: handlers of gasnet_attach do not say how many arguments they take. */
#define ANY_ARGS 255u

/* A word on a line of its own: one peer writes it, the owner reads it. */
struct word {
    _Atomic uint64_t value;
    char rest[LINE - sizeof(uint64_t)];
};

/* What a rank's peers write to, at the beginning of the region of a team. */
struct control {
    struct word arrived[STEPS];  /* barriers that the peer of a round has entered */
    struct word named[2][STEPS]; /* the world's: named barriers, of odd and even numbers */
    struct word leaving;         /* the world's: ranks that have called gasnet_exit */
};

/* The words of a team at one of its members, and one of them: in this process, or (`here` is NULL) behind a wire. */
struct control_at {
    struct control *here;
    gex_Rank_t jobrank;
    llcl_remote_t remote;
};
struct word_at {
    struct word *here;
    gex_Rank_t jobrank;
    llcl_remote_t remote;
};

struct gexl_client {
    char *name;
    gex_Flags_t flags;
    const void *data;
};
/* `segment` is set once, by gex_Segment_Attach or gex_EP_BindSegment. `handlers`, by index: NULL without
 * GEX_EP_CAPABILITY_AM. */
struct gexl_ep {
    gex_EP_Index_t index;
    gex_EP_Capabilities_t capabilities;
    gex_Flags_t flags;
    const void *data;
    gex_Segment_t segment;
    gex_AM_Entry_t *handlers;
};
struct gexl_segment {
    llcl_region_t *region;
    bool mapped;   /* its memory is the library's, which peers map */
    bool attached; /* made by gex_Segment_Attach */
    void *address;
    uintptr_t size;
    const void *data;
};

/* A segment that is not mapped here. */
struct gexl_far {
    llcl_remote_t remote;
    uintptr_t size;
};

/* Something under way: it has happened when the number, of barriers of a team or of an operation, has got there. */
struct gexl_event {
    const _Atomic uint64_t *progress;
    uint64_t until;
};

struct operation;
struct plan;
/* A team. `head` is what clients see; the address of both is the same. */
struct team {
    struct gexl_tm head;
    bool is_pair;
    gex_EP_Index_t from;  /* of a pair: the endpoint of this rank */
    gex_EP_Index_t index; /* of a pair: the endpoint at its peers */
    llcl_team_t *llcl;
    llcl_region_t *region;
    struct control *control;
    unsigned steps;
    struct word_at there[STEPS]; /* the words of `arrived` that this rank writes, at its peers */
    uint64_t sent[STEPS];
    uint64_t started;
    _Atomic uint64_t ended;
    struct plan *plans;           /* the one used last first */
    struct operation *operations; /* that have rounds to start, the oldest first */
    unsigned rounds;              /* under way */
    gex_Flags_t flags;
    gex_Memvec_t scratch;
    const void *data;
    bool listed;               /* among the teams with something under way */
    struct team *next;         /* of these */
    struct team *next_of_all;  /* of the teams with places of their own */
};

struct gexl_token {
    llcl_am_t *message;
    llcl_am_view_t view;
    gex_EP_t ep; /* whose handler runs */
    const gex_AM_Entry_t *entry;
    bool replied;
};

/* The job. One client. */
struct job {
    llcl_context_t *context;
    gex_Rank_t rank;
    gex_Rank_t size;
    struct gexl_client client;
    struct gexl_ep ep;
    struct gexl_ep *eps[GASNET_MAXEPS];       /* by index */
    struct gexl_place *places[GASNET_MAXEPS]; /* of every rank, by the endpoint's index; NULL: never heard of */
    struct team *world;
    struct control_at *controls; /* of every rank */
    size_t medium;             /* most bytes of a medium message, between any two ranks */
    unsigned yield_after;      /* rounds of a wait between two offers of the core */
    int wait_mode;
    _Atomic int leaving;
};
extern struct job job;

/* Ends the job with a sentence that begins with the rank. */
void fatal(const char *format, ...) GASNETT_NORETURN __attribute__((format(printf, 1, 2)));
/* Ends the job unless a call of the library has answered LLCL_OK. */
void must(llcl_status_t status, const char *what);
/* Like a non-fatal error of the interface: prints if gex_System_GetVerboseErrors, returns the code. */
int refuse(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the job with a sentence that names `call` if the client has not begun it, or if a handler runs on this thread. */
void must_be_up(const char *call);
bool in_handler(void);

/* Threads of the client that have entered the library. */
extern _Atomic int threads_seen;
extern __thread bool thread_seen;
static inline void see_thread(void) {
    if (!thread_seen) {
        thread_seen = true;
        atomic_fetch_add(&threads_seen, 1);
    }
}

/* Ends the job with a sentence if `tm` is a pair, which no collective call takes. */
void must_be_a_team(gex_TM_t tm, const char *call);

/* am.c */
void am_begin(void);
/* Gives an endpoint its table of handlers. False: no memory. */
bool am_endpoint(gex_EP_t ep);
/* launch.c: the place among ranks that mpirun has started, or NULL; then its files go, when all ranks have met */
const llcl_bootstrap_t *launch_begin(void);
void launch_end(void);
/* nodes.c: which ranks share memory */
void nodes_begin(void);
bool is_far(gex_Rank_t jobrank); /* has no memory in common with this rank */
bool any_far(void);
gex_Rank_t node_of(gex_Rank_t jobrank, gex_Rank_t *count);
/* words.c */
struct control_at control_find(gex_Rank_t jobrank, llcl_remote_t remote);
struct word_at word_find(const struct control_at *control, size_t offset);
void word_tell(const struct word_at *word, uint32_t op, uint64_t value);
/* exit.c */
void exit_begin(void);
/* endpoint.c and segment.c */
void endpoint_begin(void);
const struct gexl_place *places_of(gex_EP_Index_t index);
/* barrier.c: `advancing` guards barriers, events and the rounds of collectives. Outside of PAR one thread at a time
 * is in the library. */
#if defined(GASNET_PAR)
extern pthread_mutex_t advancing;
static inline void advance_lock(void) { pthread_mutex_lock(&advancing); }
static inline bool advance_trylock(void) { return pthread_mutex_trylock(&advancing) == 0; }
static inline void advance_unlock(void) { pthread_mutex_unlock(&advancing); }
#else
static inline void advance_lock(void) {}
static inline bool advance_trylock(void) { return true; }
static inline void advance_unlock(void) {}
#endif
extern _Atomic int teams_open; /* with something under way; the named barrier counts as one */
void barrier_begin_world(void);
void teams_progress(void);
void team_open(struct team *team);
void team_forget(struct team *team);
/* Meets the other ranks of a team, and polls meanwhile: before a call of the library that waits for them. */
void meet(struct team *team);
/* team.c */
struct team *team_make(llcl_team_t *llcl, gex_Flags_t flags);
void team_begin(void);
void teams_refresh(void);
/* coll.c */
void collectives_advance(struct team *team);
void plans_free(struct team *team);
/* vis.c and am.c: a handler at a peer, as a reply to nothing */
void am_notify(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t size);

/* access.c: where bytes of a rank are, here or (`here` is NULL) there. Ends the job if they are in no segment. */
struct far_place {
    gex_Rank_t jobrank;
    void *here;
    llcl_remote_t remote;
};
struct far_place find(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size);

#endif
