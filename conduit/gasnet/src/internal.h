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

struct gexl_client {
    char *name;
    gex_Flags_t flags;
    const void *data;
};
struct gexl_ep {
    const void *data;
    gex_Segment_t segment;
};
struct gexl_segment {
    void *address;
    uintptr_t size;
    const void *data;
};

/* A barrier that is under way: it has happened when `barriers` of the team have ended. */
struct gexl_event {
    struct team *team;
    uint64_t barriers;
};

struct plan;
/* A team. `head` is what clients see; the address of both is the same. */
struct team {
    struct gexl_tm head;
    llcl_team_t *llcl;
    llcl_region_t *region;
    struct control *control;
    unsigned steps;
    struct word *there[STEPS]; /* the words of `arrived` that this rank writes, at its peers */
    uint64_t sent[STEPS];
    uint64_t started;
    _Atomic uint64_t ended;
    struct plan *plans;
    gex_Flags_t flags;
    gex_Memvec_t scratch;
    const void *data;
    bool listed; /* among the teams with barriers under way */
    struct team *next;
};

struct gexl_token {
    llcl_am_t *message;
    llcl_am_view_t view;
    const gex_AM_Entry_t *entry;
    bool replied;
};

/* The job. One client, one endpoint, one segment at most. */
struct job {
    llcl_context_t *context;
    gex_Rank_t rank;
    gex_Rank_t size;
    struct gexl_client client;
    struct gexl_ep ep;
    struct gexl_segment segment;
    struct team *world;
    struct control **controls; /* of every rank, in this process */
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

/* am.c */
void am_begin(void);
/* barrier.c */
void barrier_begin_world(void);
void barrier_progress(void);
void barrier_forget(struct team *team);
extern _Atomic int barriers_open;
/* team.c */
struct team *team_make(llcl_team_t *llcl, gex_Flags_t flags);
void team_begin(void);
/* coll.c */
void plans_free(struct team *team);
/* vis.c and am.c: a handler at a peer, as a reply to nothing */
void am_notify(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t size);

#endif
