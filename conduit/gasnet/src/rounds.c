/* Rounds of collectives other than gex_Coll_BarrierNB, over persistent collectives of libllcl.
 *
 * A client's buffers may be any memory. A persistent collective has fixed buffers, so the conduit
 * allocates them and copies the data in and out. A long operation is cut into pieces, and each
 * piece is a round. A thread that polls, waits or tests starts rounds and ends them.
 *
 * All ranks make the same calls on a team in the same order. So all ranks keep the same plans, and
 * the rounds of a plan meet in the order in which clients began the operations. A plan has two
 * turns (two persistent collectives), used alternately: a second operation of the same shape can
 * begin before the first has ended. Making a turn is collective: all ranks of the team meet in the
 * call and poll meanwhile, as the specification allows. */
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

#define PLANS_KEPT 16
#define TURNS 2
#define PIECE ((size_t)4 << 20) /* bytes that one round of a plan moves */

struct turn {
    llcl_coll_t *coll;
    llcl_region_t *region;
    char *send, *receive;
    gex_Rank_t sends, receives;  /* blocks in each buffer */
    size_t element, size;        /* bytes of an element, and of a block */
    struct operation *operation; /* the operation whose round is under way, or NULL */
    char *dst;                   /* where this round's result goes */
};
/* The turns for one shape of operation. */
struct plan {
    struct wish wish;
    struct turn turns[TURNS];
    uint64_t begun;  /* rounds that all operations begun so far need */
    uint64_t rounds; /* rounds started; turn rounds % TURNS runs the next one */
    struct plan *next;
};

static void combine(const void *left, const void *right, void *result, uint64_t count, void *data) {
    const struct turn *turn = data;
    const struct operation *operation = turn->operation;
    size_t element = turn->element;
    if (result == right) {
        operation->function(left, result, count, operation->data);
        return;
    }
    /* The client's function overwrites its right operand, so it gets a copy. */
    char room[4096];
    for (uint64_t done = 0, part; done < count; done += part) {
        part = sizeof room / element ? sizeof room / element : 1;
        part = part < count - done ? part : count - done;
        void *copy = part * element <= sizeof room ? room : malloc(part * element);
        if (!copy) {
            fatal("no memory for an element of %zu bytes", element);
        }
        memcpy(copy, (const char *)right + done * element, part * element);
        operation->function((const char *)left + done * element, copy, part, operation->data);
        memcpy((char *)result + done * element, copy, part * element);
        if (copy != room) {
            free(copy);
        }
    }
}

static bool is_of_all(enum kind kind) { return kind == GATHER || kind == SCATTER || kind == GATHER_ALL || kind == EXCHANGE; }

static llcl_status_t (*init_of(enum kind kind))(const llcl_coll_params_t *, llcl_coll_t **) {
    switch (kind) {
    case BROADCAST: return llcl_broadcast_init;
    case REDUCE: return llcl_reduce_init;
    case ALLREDUCE: return llcl_allreduce_init;
    case GATHER: return llcl_gather_init;
    case SCATTER: return llcl_scatter_init;
    case GATHER_ALL: return llcl_allgather_init;
    case EXCHANGE: return llcl_alltoall_init;
    case MEET: return llcl_barrier_init;
    }
    fatal("a collective of kind %d", kind);
}

/* Makes a turn; collective. The caller has met the other ranks, so that this does not wait long
 * without polling. */
static void turn_make(struct team *team, const struct wish *wish, struct turn *turn) {
    bool is_root = team->head.rank == wish->root;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    turn->element = wish->element;
    turn->size = wish->count * wish->element;
    turn->sends = wish->kind == EXCHANGE || (wish->kind == SCATTER && is_root) ? team->head.size : 1;
    turn->receives = wish->kind == EXCHANGE || wish->kind == GATHER_ALL || (wish->kind == GATHER && is_root)
                         ? team->head.size : 1;
    size_t send = (turn->sends * turn->size + LINE - 1) / LINE * LINE;
    must(llcl_region_allocate(job.context, send + turn->receives * turn->size, 0, &turn->region),
         "memory for a collective");
    turn->send = llcl_region_address(turn->region);
    turn->receive = turn->send + send;
    params.team = team->llcl;
    params.send = llcl_region_local(turn->region, 0);
    params.receive = llcl_region_local(turn->region, send);
    params.count = wish->count;
    params.type = wish->type;
    params.element_size = wish->type == LLCL_TYPE_BYTES ? wish->element : 0;
    params.op = wish->op;
    params.root = wish->root;
    params.function = wish->op == LLCL_OP_USER ? combine : NULL;
    params.function_data = turn;
    must(init_of(wish->kind)(&params, &turn->coll), "making a collective");
}

static bool is_idle(const struct plan *plan) {
    advance_lock();
    bool idle = plan->rounds == plan->begun;
    for (int i = 0; i < TURNS; i++) {
        idle = idle && !plan->turns[i].operation;
    }
    advance_unlock();
    return idle;
}

/* Waits until a plan's rounds have ended, takes it out of the list and frees it. */
static void plan_drop(struct plan **at) {
    struct plan *plan = *at;
    GASNET_BLOCKUNTIL(is_idle(plan));
    advance_lock();
    *at = plan->next;
    advance_unlock();
    for (int i = 0; i < TURNS; i++) {
        if (plan->turns[i].coll) {
            must(llcl_coll_free(plan->turns[i].coll), "the end of a plan");
            must(llcl_region_free(plan->turns[i].region), "the end of a plan");
        }
    }
    free(plan);
}

void plans_free(struct team *team) {
    while (team->plans) {
        plan_drop(&team->plans);
    }
}

static bool same(const struct wish *a, const struct wish *b) {
    return a->kind == b->kind && a->root == b->root && a->type == b->type && a->op == b->op &&
           a->element == b->element && a->count == b->count;
}

/* Makes a plan without turns. Frees the least recently used plan if the team has PLANS_KEPT of
 * them. */
static struct plan *plan_new(struct team *team, const struct wish *wish) {
    struct plan *plan = calloc(1, sizeof *plan), **last = &team->plans;
    int kept = 0;
    if (!plan) {
        fatal("no memory for a plan");
    }
    plan->wish = *wish;
    for (struct plan **at = &team->plans; *at; at = &(*at)->next) {
        last = at;
        kept++;
    }
    if (kept == PLANS_KEPT) {
        plan_drop(last);
    }
    return plan;
}

/* The team's plan for a shape, moved to the front of the list. Only the thread that begins a
 * collective changes the list; others read it under `advancing`. */
static struct plan *plan_find(struct team *team, const struct wish *wish) {
    struct plan **at = &team->plans, *plan;
    while (*at && !same(&(*at)->wish, wish)) {
        at = &(*at)->next;
    }
    plan = *at;
    if (plan && at == &team->plans) {
        return plan;
    }
    if (!plan) {
        plan = plan_new(team, wish);
        at = NULL;
    }
    advance_lock();
    if (at) {
        *at = plan->next;
    }
    plan->next = team->plans;
    team->plans = plan;
    advance_unlock();
    return plan;
}

/* Makes the turns that `rounds` more rounds of `count` elements need. */
static void prepare(struct team *team, struct wish wish, uint64_t count, uint64_t rounds) {
    if (!count || !rounds) {
        return;
    }
    wish.count = count;
    struct plan *plan = plan_find(team, &wish);
    for (uint64_t i = 0; i < rounds && i < TURNS; i++) {
        struct turn *turn = &plan->turns[(plan->begun + i) % TURNS];
        if (!turn->coll) {
            meet(team);
            turn_make(team, &wish, turn);
        }
    }
    plan->begun += rounds;
}

/* The elements of one rank's block that a round takes. */
static uint64_t piece_of(const struct team *team, const struct wish *wish) {
    size_t each = wish->element * (size_t)(is_of_all(wish->kind) ? team->head.size : 1);
    uint64_t most = PIECE / each ? PIECE / each : 1;
    return wish->count < most ? wish->count : most;
}

/* Ends the turn's round if libllcl has finished it. The caller holds `advancing`. */
static bool round_end(struct team *team, struct turn *turn) {
    struct operation *operation = turn->operation;
    llcl_status_t status = llcl_coll_test(turn->coll);
    if (status > 0) {
        return false;
    }
    must(status, "a collective");
    for (gex_Rank_t i = 0; turn->dst && i < turn->receives; i++) {
        memcpy(turn->dst + i * operation->stride, turn->receive + i * turn->size, turn->size);
    }
    turn->operation = NULL;
    team->rounds--;
    if (operation->wish.kind == MEET) {
        team->meets = false;
    }
    if (--operation->rounds || operation->wish.count) {
        return true;
    }
    if (operation->alone) {
        free(operation);
    } else {
        atomic_store_explicit(&operation->ended, 1, memory_order_release);
    }
    return true;
}

/* Starts the next round of the oldest operation that has one left. False: its turn is still busy,
 * or it may not run beside the rounds under way. The caller holds `advancing`. */
static bool round_start(struct team *team) {
    struct operation *operation = team->operations;
    struct wish wish = operation->wish;
    struct plan *plan = team->plans;
    if (team->meets || (wish.kind == MEET && team->rounds)) {
        return false;
    }
    wish.count = piece_of(team, &wish);
    while (!same(&plan->wish, &wish)) {
        plan = plan->next;
    }
    struct turn *turn = &plan->turns[plan->rounds % TURNS];
    if (turn->operation) {
        return false;
    }
    plan->rounds++;
    turn->operation = operation;
    turn->dst = operation->dst;
    if (operation->src) {
        char *into = wish.kind == BROADCAST ? turn->receive : turn->send;
        for (gex_Rank_t i = 0; i < turn->sends; i++) {
            memcpy(into + i * turn->size, operation->src + i * operation->stride, turn->size);
        }
        operation->src += turn->size;
    }
    operation->dst = operation->dst ? operation->dst + turn->size : NULL;
    operation->wish.count -= wish.count;
    operation->rounds++;
    team->rounds++;
    team->meets = wish.kind == MEET;
    if (!operation->wish.count) {
        team->operations = operation->next;
    }
    must(llcl_coll_start(turn->coll), "a collective");
    return true;
}

/* The caller holds `advancing`. */
void collectives_advance(struct team *team) {
    bool more = team->rounds || team->operations;
    while (more) {
        unsigned seen = 0, rounds = team->rounds;
        more = false;
        for (struct plan *plan = team->plans; plan && seen < rounds; plan = plan->next) {
            for (int i = 0; i < TURNS; i++) {
                if (plan->turns[i].operation) {
                    seen++;
                    more |= round_end(team, &plan->turns[i]);
                }
            }
        }
        while (team->operations && round_start(team)) {
            more = true;
        }
    }
}

gex_Event_t operation_begin(gex_TM_t tm, const struct operation *wanted) {
    struct team *team = team_of(tm);
    struct operation *operation = malloc(sizeof *operation), **last;
    uint64_t piece = piece_of(team, &wanted->wish);
    if (!operation) {
        fatal("a collective: no memory");
    }
    *operation = *wanted;
    operation->event = (struct gexl_event){.progress = &operation->ended, .until = 1};
    prepare(team, wanted->wish, piece, wanted->wish.count / piece);
    prepare(team, wanted->wish, wanted->wish.count % piece, 1);
    advance_lock();
    for (last = &team->operations; *last;) {
        last = &(*last)->next;
    }
    *last = operation;
    collectives_advance(team);
    /* One without an event may be freed already. */
    bool ended = !wanted->alone && atomic_load_explicit(&operation->ended, memory_order_relaxed);
    if (!ended) {
        team_open(team);
    }
    advance_unlock();
    if (ended) {
        free(operation);
    }
    return ended || wanted->alone ? GEX_EVENT_INVALID : &operation->event;
}
