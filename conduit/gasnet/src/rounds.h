/* Operations of collectives, and the engine that runs them in rounds (rounds.c). */
#ifndef GEXL_ROUNDS_H
#define GEXL_ROUNDS_H

#include "internal.h"

/* MEET moves no data: it begins when the operations before it have ended, and those behind it wait
 * for its end. */
enum kind { BROADCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, GATHER_ALL, EXCHANGE, MEET };
/* The shape of an operation. `count`: the elements of one rank's block. */
struct wish {
    enum kind kind;
    gex_Rank_t root;
    uint32_t type;
    uint32_t op;
    uint32_t element;
    uint64_t count;
};

/* An operation that the client has begun. The client frees it as its event, the first member. */
struct operation {
    struct gexl_event event;
    _Atomic uint64_t ended;
    struct wish wish; /* wish.count: the elements that no round has taken yet */
    const char *src;  /* their place; NULL: this rank contributes nothing */
    char *dst;        /* where their result goes; NULL: this rank receives nothing */
    size_t stride;    /* bytes from one rank's block to the next, in `src` and in `dst` */
    gex_Coll_ReduceFn_t function;
    const void *data;
    bool alone;      /* it has no event: the engine frees it */
    unsigned rounds; /* rounds under way */
    struct operation *next;
};

/* Begins an operation. Returns GEX_EVENT_INVALID if it has ended already, or is `alone`. */
gex_Event_t operation_begin(gex_TM_t tm, const struct operation *wanted);

#endif
