/* Types and functions that the conduit's sources share. */
#ifndef GEXL_INTERNAL_H
#define GEXL_INTERNAL_H

#include <llcl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "gasnet.h"

/* The most rounds of a barrier: log2 of GASNET_MAXNODES, rounded up. */
#define STEPS 12
#define LINE 64
/* A value of gex_nargs: gasnet_attach does not declare how many arguments a handler takes. */
#define ANY_ARGS 255u

/* A word on a cache line of its own. One peer writes it, the owner reads it. */
struct word {
    _Atomic uint64_t value;
    char rest[LINE - sizeof(uint64_t)];
};

/* The words that peers write at a rank. They lie at the beginning of a team's region. */
struct control {
    struct word arrived[STEPS];  /* by round: the last barrier for which the peer has finished the rounds before */
    struct word named[2][STEPS]; /* world only: the same for named barriers, even and odd numbers apart */
    struct word leaving;         /* world only: how many ranks have called gasnet_exit */
};

/* The words of a team at one of its members, and a single word. `here` is the address in this
 * process, or NULL if the member is behind a wire. */
struct control_at {
    struct control *here;
    gex_Rank_t jobrank;
    llcl_remote_t remote;
};
struct word_at {
    struct word *here;
    gex_Rank_t jobrank;
    llcl_remote_t remote;
    uint64_t told; /* the value that this rank has written last */
};

struct gexl_client {
    char *name;
    gex_Flags_t flags;
    const void *data;
};
/* gex_Segment_Attach or gex_EP_BindSegment sets `segment`, gex_Segment_Destroy clears it.
 * `handlers` is indexed by handler; it is NULL without GEX_EP_CAPABILITY_AM. */
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
    bool mapped;   /* libllcl has allocated the memory, so peers of the node map it */
    bool attached; /* gex_Segment_Attach has made it */
    void *address;
    uintptr_t size;
    const void *data;
};

/* A peer's segment that this process does not map. */
struct gexl_far {
    llcl_remote_t remote;
    uintptr_t size;
};

/* An event has ended when *progress, which counts a team's barriers, ended accesses or an ended
 * collective, has reached `until`. `root`: of a leaf, the event of which it is a part. `leaves`: of
 * the root event of accesses, their local completion, and the accesses themselves. `ended`: see
 * events.c. */
struct gexl_event {
    const _Atomic uint64_t *progress;
    uint64_t until;
    struct gexl_event *leaves;
    struct gexl_event *root;
    bool ended;
};
enum { OF_LOCAL, OF_ALL };

struct operation;
struct plan;
/* A team or a pair. Clients see `head`, its last member, and the places behind it. */
struct team {
    bool is_pair;
    gex_EP_Index_t from;  /* pair: this rank's endpoint */
    gex_EP_Index_t index; /* pair: the peers' endpoint */
    llcl_team_t *llcl;
    llcl_region_t *region;
    struct control *control;
    unsigned steps;
    struct word_at there[STEPS]; /* the words `arrived` that this rank writes at its peers */
    uint64_t started;            /* the last barrier that this rank has entered */
    _Atomic uint64_t ended;      /* the last barrier that all ranks have entered */
    struct plan *plans;           /* the most recently used one first */
    struct operation *operations; /* those with rounds to start, the oldest first */
    unsigned rounds;              /* rounds of collectives under way */
    bool meets;                   /* one of them lets none run beside it */
    gex_Flags_t flags;
    gex_Memvec_t scratch;
    const void *data;
    bool listed;               /* the team is in the list of teams with barriers or collectives under way */
    struct team *next;         /* in that list */
    struct team *next_of_all;  /* in the list of all teams and pairs */
    struct gexl_tm head;
};
_Static_assert(offsetof(struct team, head) + sizeof(struct gexl_tm) == sizeof(struct team),
               "the places lie right behind a team");
static inline struct team *team_of(gex_TM_t tm) {
    return (struct team *)(void *)((char *)tm - offsetof(struct team, head));
}

/* The segment that lies behind a place which is not mapped; NULL: none is known. */
static inline const struct gexl_far *far_of(const struct gexl_place *place) {
    return place->size ? NULL : place->at.far;
}

struct gexl_token {
    llcl_am_t *message;
    llcl_am_view_t view;
    gex_EP_t ep; /* the endpoint whose handler runs */
    const gex_AM_Entry_t *entry;
    bool replied;
};

/* The job, with its one client. */
struct job {
    llcl_context_t *context;
    gex_Rank_t rank;
    gex_Rank_t size;
    struct gexl_client client;
    struct gexl_ep ep;
    struct gexl_ep *eps[GASNET_MAXEPS];       /* by index */
    struct team *world;
    struct control_at *controls; /* by rank: the words of the world's team */
    size_t small;              /* most bytes of a write that libllcl copies at once */
    size_t medium;             /* most bytes of a medium message between any two ranks */
    uintptr_t segment;         /* most bytes of a segment that every rank can attach */
    unsigned yield_mask;       /* a waiting thread yields its core after each yield_mask + 1 polls */
    int wait_mode;
    _Atomic int leaving; /* 0, or 256 plus the exit code: a thread of this rank is in gasnet_exit */
};
extern struct job job;

/* Prints a sentence with the rank, and ends the job. */
void fatal(const char *format, ...) GASNETT_NORETURN __attribute__((format(printf, 1, 2)));
/* Ends the job unless `status` is LLCL_OK, or this rank is ending. `what`: the part of the conduit
 * that needed the call. */
void must(llcl_status_t status, const char *what);
/* Returns the code. Prints the sentence if gex_System_GetVerboseErrors() is set. */
int refuse(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the job if `call` comes before gex_Client_Init or from a handler. */
void must_be_up(const char *call);
bool in_handler(void);

/* The number of the client's threads that have entered the conduit and have not ended. */
extern _Atomic int threads_here;
extern __thread bool thread_seen;
void count_thread(void);
/* exit.c: stops the calling thread if another one is ending this process. */
void stop_at_end(void);
/* exit.c: whether the calling thread is ending this process. If another one is, it stops. Peers end
 * at the same time, so that calls fail. */
bool is_at_end(void);
/* exit.c: whether this process is the rank, and not a child of it by fork(). */
bool is_rank(void);
static inline void see_thread(void) {
    if (!thread_seen) {
        count_thread();
    }
}

/* Ends the job if `tm` is a pair: collective calls take teams only. */
void must_be_a_team(gex_TM_t tm, const char *call);

/* am.c */
void am_begin(void);
/* Gives an endpoint an empty table of handlers. False: no memory. */
bool am_endpoint(gex_EP_t ep);
/* am_prepare.c */
void prepare_thread_ends(void);
/* launch.c: launch_begin() returns a bootstrap for ranks that a known launcher has started, else
 * NULL. launch_end() removes its files, when all ranks have met. */
const llcl_bootstrap_t *launch_begin(void);
void launch_end(bool begun);
/* nodes.c: a rank is far if it shares no memory with this rank */
void nodes_begin(void);
bool is_far(gex_Rank_t jobrank);
bool any_far(void);
/* Whether this machine's ranks may use as many cores as there are such ranks. */
bool has_core_for_each_rank(void);
/* environment.c: an upper limit of memory for this rank: `otherwise`, or what the variable says: a
 * number with a unit (none: MB), or a fraction of `memory` below 1 without one; then /P, or /H for
 * what all `sharers` have together. Other text ends the job. */
uint64_t limit_from_environment(const char *name, uint64_t otherwise, uint64_t memory, unsigned sharers);
/* segment.c: finds job.segment; collective */
void segment_begin(void);
/* words.c */
struct control_at control_find(gex_Rank_t jobrank, llcl_remote_t remote);
struct word_at word_find(const struct control_at *control, size_t offset);
void word_tell(struct word_at *word, uint64_t value);
/* exit.c */
void exit_begin(void);
/* endpoint.c */
void endpoint_begin(void);
/* barrier.c: the mutex `advancing` guards barriers, events and the rounds of collectives. SEQ and
 * PARSYNC need none, since one thread at a time is in the conduit. */
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
extern _Atomic int teams_open; /* teams with barriers or collectives under way, plus 1 for a named barrier */
void barrier_begin_world(void);
void teams_progress(void);
void team_open(struct team *team);
void team_forget(struct team *team);
/* A barrier that polls. The conduit calls it before a call of libllcl that waits for other ranks
 * without polling. */
void meet(struct team *team);
/* A barrier during which this thread runs no handler. All ranks of the team are in the same
 * collective call already, so none of them waits for an answer of a handler. */
void meet_without_handlers(struct team *team);
/* team.c */
struct team *team_make(llcl_team_t *llcl, gex_Flags_t flags);
void team_begin(void);
/* Memory for a team or a pair, all zeroes but its rank and its size. team_list() fills in its
 * places and keeps them up to date. */
struct team *team_allocate(gex_Rank_t rank, gex_Rank_t size);
void team_list(struct team *team);
/* Enters a rank's segment at an endpoint index in all teams and pairs. */
void teams_place(gex_EP_Index_t index, gex_Rank_t jobrank, const struct gexl_place *place);
/* Whether an address of this process is in the segment of a rank. A handler of signals calls it. */
bool is_in_segment(const void *address);
/* rounds.c */
void collectives_advance(struct team *team);
void plans_free(struct team *team);
/* am.c: runs a reply handler at a peer without a request, for peer completion (vis.c) */
void am_notify(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t size);

/* access.c: finds bytes of a rank's segment. `here` is their address in this process, or NULL if
 * only `remote` reaches them. Ends the job if they are not in the segment. */
struct far_place {
    gex_Rank_t jobrank;
    void *here;
    llcl_remote_t remote;
};
struct far_place find(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size);

/* events.c: ends the job, unless it is ending */
void access_failed(void);
/* group.c: a group of accesses, with an event for all of them or without, and its words, in the
 * order of the bits of GEX_EC_*. LOCAL counts the local completions for which the client has
 * asked. */
struct group;
enum { PUTS, LOCAL, GETS, RMWS, WORDS };
struct group *group_new(bool has_event);
/* Begins an access. Returns false if GEX_FLAG_IMMEDIATE is set and the access was not begun.
 * `local`: when the caller may change the source of a put: when the call returns, when the put
 * has ended, or when LOCAL has counted it. `word`: that of the atomic's category. The caller has
 * filled in `params` but for the completion. */
enum local { AT_RETURN, AT_END, WHEN_COUNTED };
bool group_put(struct group *group, gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size,
               enum local local, gex_Flags_t flags);
bool group_get(struct group *group, gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size,
               gex_Flags_t flags);
bool group_atomic(struct group *group, llcl_atomic_params_t *params, unsigned word, gex_Flags_t flags);
/* Whether all accesses that a word counts have ended. */
bool group_has_ended(const struct group *group, unsigned word);
/* Whether all accesses have ended, well or not. */
bool group_is_over(const struct group *group);
/* The event of a group; GEX_EVENT_INVALID if all its accesses have ended, and the group is
 * freed. */
gex_Event_t group_event(struct group *group);
/* The event of a group of one access. GEX_EVENT_NO_OP if that has not begun, and the group is
 * freed. */
gex_Event_t group_event_if(bool begun, struct group *group);
/* nonblocking.c: the group for the calling thread's NBI accesses */
struct group *nbi_group(void);
void nonblocking_thread_ends(void);

#endif
