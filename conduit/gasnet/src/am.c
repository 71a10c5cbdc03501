/* Active messages: requests, replies, and the table of handlers.
 *
 * A message of GASNet travels as a message of libllcl. The handler's index is its id, the arguments
 * are its header. The tag holds the kind, the number of arguments, and the endpoints of sender and
 * receiver. The payload of a medium message is the payload. The sender of a long message puts the
 * bytes at their destination first, and the payload of the message is a place_of_long. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST ((size_t)1 << 30)
/* A tag: bits 0-1 the kind, 2-6 the number of arguments, 7 NOTIFIES, 8-11 the receiver's endpoint,
 * 12-15 the sender's. */
#define NOTIFIES 128u /* a request of am_notify(), which runs a reply handler */
#define TO(tag) ((tag) >> 8 & 15)
#define FROM(tag) ((tag) >> 12)
#define ROUTE(from, to) ((unsigned)(to) << 8 | (unsigned)(from) << 12)

struct place_of_long {
    uint64_t address;
    uint64_t size;
};
/* Bytes that fill() makes for a message. */
union made {
    struct place_of_long place;
    gex_AM_Arg_t args[2];
};

_Static_assert(GASNET_MAXEPS <= 16, "a tag has 4 bits for an endpoint");

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static __thread int handlers_running;

bool in_handler(void) { return handlers_running != 0; }

unsigned int gex_AM_MaxArgs(void) { return 16; }
/* The buffer that gex_AM_Prepare allocates has room for a medium message. */
static size_t longest(gex_Flags_t flags) { return flags & GEX_FLAG_AM_PREPARE_LEAST_ALLOC ? job.medium : LONGEST; }
static size_t longest_medium(gex_Flags_t flags) { return (void)flags, job.medium; }
#define LIMIT(name, value)                                                                                   \
    size_t name(gex_TM_t tm, gex_Rank_t peer, const gex_Event_t *lc, gex_Flags_t flags, unsigned n) {        \
        (void)tm, (void)peer, (void)lc, (void)n;                                                             \
        return value(flags);                                                                                 \
    }
LIMIT(gex_AM_MaxRequestLong, longest)
LIMIT(gex_AM_MaxReplyLong, longest)
LIMIT(gex_AM_MaxRequestMedium, longest_medium)
LIMIT(gex_AM_MaxReplyMedium, longest_medium)
size_t gex_AM_LUBRequestLong(void) { return LONGEST; }
size_t gex_AM_LUBReplyLong(void) { return LONGEST; }
size_t gex_AM_LUBRequestMedium(void) { return job.medium; }
size_t gex_AM_LUBReplyMedium(void) { return job.medium; }
size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc, gex_Flags_t flags, unsigned n) {
    (void)token, (void)lc, (void)n;
    return longest(flags);
}
size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc, gex_Flags_t flags, unsigned n) {
    (void)token, (void)lc, (void)flags, (void)n;
    return job.medium;
}

static bool is_reply(const struct gexl_token *token) {
    return token->view.flags & LLCL_AM_RESPONSE || token->view.tag & NOTIFIES;
}

gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask) {
    (void)mask;
    info->gex_srcrank = token->view.source;
    info->gex_ep = token->ep;
    info->gex_entry = token->entry;
    info->gex_is_req = !is_reply(token);
    info->gex_is_long = (token->view.tag & 3) == GEXL_LONG;
    return GEX_TI_ALL;
}

int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *source) {
    if (!token || !source) {
        return refuse(GASNET_ERR_BAD_ARG, "gasnet_AMGetMsgSource: NULL");
    }
    *source = token->view.source;
    return GASNET_OK;
}

/* Calls a handler with n arguments. Tn: their types, Vn: their values. */
#define T1 , gex_AM_Arg_t
#define T2 T1 T1
#define T4 T2 T2
#define T8 T4 T4
#define V1 , a[0]
#define V2 V1, a[1]
#define V3 V2, a[2]
#define V4 V3, a[3]
#define V5 V4, a[4]
#define V6 V5, a[5]
#define V7 V6, a[6]
#define V8 V7, a[7]
#define V9 V8, a[8]
#define V10 V9, a[9]
#define V11 V10, a[10]
#define V12 V11, a[11]
#define V13 V12, a[12]
#define V14 V13, a[13]
#define V15 V14, a[14]
#define V16 V15, a[15]
#define CALL(n, types, values)                                                                     \
    case n:                                                                                        \
        if (kind == GEXL_SHORT) {                                                                  \
            ((void (*)(gex_Token_t types))entry->gex_fnptr)(token values);                         \
        } else {                                                                                   \
            ((void (*)(gex_Token_t, void *, size_t types))entry->gex_fnptr)(token, data, size values); \
        }                                                                                          \
        break;
static void call(const gex_AM_Entry_t *entry, gex_Token_t token, unsigned kind, unsigned n, const gex_AM_Arg_t *a,
                 void *data, size_t size) {
    switch (n) {
        CALL(0, , )
        CALL(1, T1, V1)
        CALL(2, T2, V2)
        CALL(3, T2 T1, V3)
        CALL(4, T4, V4)
        CALL(5, T4 T1, V5)
        CALL(6, T4 T2, V6)
        CALL(7, T4 T2 T1, V7)
        CALL(8, T8, V8)
        CALL(9, T8 T1, V9)
        CALL(10, T8 T2, V10)
        CALL(11, T8 T2 T1, V11)
        CALL(12, T8 T4, V12)
        CALL(13, T8 T4 T1, V13)
        CALL(14, T8 T4 T2, V14)
        CALL(15, T8 T4 T2 T1, V15)
        CALL(16, T8 T8, V16)
    }
}

/* Ends the job if the handler was not registered for this kind of message and number of
 * arguments. */
static void check_entry(const struct gexl_token *token, unsigned kind, unsigned n) {
    const gex_AM_Entry_t *entry = token->entry;
    unsigned to = TO(token->view.tag);
    static const char *const kinds[] = {"short", "medium", "long"};
    gex_Flags_t is = GEX_FLAG_AM_SHORT << kind;
    gex_Flags_t way = is_reply(token) ? GEX_FLAG_AM_REPLY : GEX_FLAG_AM_REQUEST;
    if (!entry->gex_fnptr) {
        fatal("rank %u has sent a message for handler %u%s, which is not registered here", token->view.source,
              token->view.id, to ? " of a further endpoint" : "");
    }
    if (entry->gex_nargs != ANY_ARGS && (entry->gex_nargs != n || !(entry->gex_flags & is) ||
                                         !(entry->gex_flags & way))) {
        fatal("rank %u has sent a %s %s with %u arguments to handler %u, registered with flags %#x for %u arguments",
              token->view.source, kinds[kind], way == GEX_FLAG_AM_REPLY ? "reply" : "request", n, token->view.id,
              entry->gex_flags, entry->gex_nargs);
    }
}

static void handle(struct gexl_token *token, void *data, size_t size) {
    unsigned kind = token->view.tag & 3, n = token->view.tag >> 2 & 31, to = TO(token->view.tag);
    token->ep = job.eps[to];
    if (!token->ep || !token->ep->handlers) {
        fatal("rank %u has sent a message to endpoint %u, which %s here", token->view.source, to,
              token->ep ? "has no GEX_EP_CAPABILITY_AM" : "does not exist");
    }
    token->entry = &token->ep->handlers[token->view.id];
    check_entry(token, kind, n);
    handlers_running++;
    call(token->entry, token, kind, n, token->view.header, data, size);
    handlers_running--;
}

static void run(llcl_am_t *message, void *nothing) {
    struct gexl_token token;
    (void)nothing;
    llcl_am_view(message, &token.view);
    token.message = message;
    token.replied = false;
    if ((token.view.tag & 3) == GEXL_LONG) {
        const struct place_of_long *place = token.view.payload;
        handle(&token, (void *)(uintptr_t)place->address, place->size);
    } else {
        handle(&token, (void *)token.view.payload, token.view.payload_size);
    }
}

/* Runs the handler of a message from a rank to itself inside the sending call, so that no other
 * thread needs to poll. A handler may write to a medium payload, so the payload is copied. */
static void handle_here(const struct gexl_message *message, const gex_AM_Arg_t *args, uint16_t tag, bool response) {
    struct gexl_token token = {NULL, LLCL_AM_VIEW_INIT, NULL, NULL, false};
    _Alignas(16) char room[1024];
    void *data = message->kind == GEXL_LONG ? message->destination : room;
    token.view.source = job.rank;
    token.view.id = message->handler;
    token.view.tag = tag;
    token.view.flags = response ? LLCL_AM_RESPONSE : 0;
    token.view.header = args;
    if (message->kind == GEXL_MEDIUM && message->size > sizeof room && !(data = malloc(message->size))) {
        fatal("no memory for a message of %zu bytes to oneself", message->size);
    }
    if (message->size && message->source != data) {
        memmove(data, message->source, message->size);
    }
    handle(&token, data, message->size);
    if (message->kind == GEXL_MEDIUM && data != room) {
        free(data);
    }
}

/* Registers run() for every id: the receiver, not libllcl, then reports a message for a handler
 * that is missing. */
void am_begin(void) {
    for (uint32_t id = 0; id < LLCL_AM_IDS; id++) {
        must(llcl_am_register(job.context, id, run, NULL), "registering handlers");
    }
}

bool am_endpoint(gex_EP_t ep) { return (ep->handlers = calloc(LLCL_AM_IDS, sizeof *ep->handlers)); }

static int place_entry(gex_AM_Entry_t *handlers, gex_AM_Entry_t *wanted) {
    unsigned index = wanted->gex_index;
    if (!index) {
        for (index = LLCL_AM_IDS - 1; index >= GEX_AM_INDEX_BASE && handlers[index].gex_fnptr; index--) {
        }
    }
    if (index < GEX_AM_INDEX_BASE) {
        return refuse(wanted->gex_index ? GASNET_ERR_BAD_ARG : GASNET_ERR_RESOURCE,
                      "handler index %u: indices are %u to 255", index, GEX_AM_INDEX_BASE);
    }
    if (handlers[index].gex_fnptr) {
        return refuse(GASNET_ERR_BAD_ARG, "handler index %u is taken", index);
    }
    if (wanted->gex_nargs > 16 && wanted->gex_nargs != ANY_ARGS) {
        return refuse(GASNET_ERR_BAD_ARG, "handler index %u: %u arguments, at most 16", index, wanted->gex_nargs);
    }
    wanted->gex_index = (gex_AM_Index_t)index;
    handlers[index] = *wanted;
    return GASNET_OK;
}

/* Places the entries with an index first. The others take indices that are left. */
int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t entries) {
    int answer = GASNET_OK;
    if (!ep || !ep->handlers) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_EP_RegisterHandlers: an endpoint that takes no active messages");
    }
    pthread_mutex_lock(&registering);
    for (size_t i = 0; i < entries && answer == GASNET_OK; i++) {
        answer = table[i].gex_index ? place_entry(ep->handlers, &table[i]) : GASNET_OK;
    }
    for (size_t i = 0; i < entries && answer == GASNET_OK; i++) {
        answer = table[i].gex_index ? GASNET_OK : place_entry(ep->handlers, &table[i]);
    }
    pthread_mutex_unlock(&registering);
    return answer;
}

/* The `destination` of a message of am_notify(), by which tag_of() recognises it. */
static char notifies[1];

static uint16_t tag_of(const struct gexl_message *message, unsigned route) {
    return (uint16_t)(message->kind | message->args << 2 | (message->destination == notifies ? NOTIFIES : 0) | route);
}

/* The parameters of this thread's requests and of its replies. Most fields keep their first value:
 * to set all of them for each message would cost as much as the rest of fill(). A request has its
 * own, since handlers may run and reply while it waits for room. */
static __thread llcl_am_params_t of_requests = LLCL_AM_PARAMS_INIT, of_replies = LLCL_AM_PARAMS_INIT;

/* Fills in the message of libllcl, all but the peer. `params` refers to `made`. */
static inline void fill(llcl_am_params_t *params, const struct gexl_message *message, const gex_AM_Arg_t *args,
                        unsigned route, union made *made) {
    params->id = message->handler;
    params->tag = tag_of(message, route);
    params->header = message->args ? args : NULL;
    params->header_size = message->args * sizeof *args;
    if (message->kind == GEXL_MEDIUM) {
        params->payload = message->source ? message->source : "";
        params->payload_size = message->size;
    } else if (message->kind == GEXL_LONG) {
        made->place.address = (uintptr_t)message->destination;
        made->place.size = message->size;
        params->payload = &made->place;
        params->payload_size = sizeof made->place;
    } else {
        params->payload = NULL;
        params->payload_size = 0;
        if (message->args <= 2) {
            /* A header of 8 bytes without a payload takes libllcl's shortest path. */
            made->args[0] = message->args > 0 ? args[0] : 0;
            made->args[1] = message->args > 1 ? args[1] : 0;
            params->header = made->args;
            params->header_size = sizeof made->args;
        }
    }
}

static void check_size(const struct gexl_message *message) {
    size_t most = message->kind == GEXL_LONG ? LONGEST : job.medium;
    if (message->size > most) {
        fatal("a %s message of %zu bytes, at most %zu", message->kind == GEXL_LONG ? "long" : "medium",
              message->size, most);
    }
}

int gexl_request(gex_TM_t tm, gex_Rank_t rank, const struct gexl_message *message, const gex_AM_Arg_t *args,
                 gex_Event_t *lc, gex_Flags_t flags) {
    llcl_am_params_t *params = &of_requests;
    union made made;
    llcl_status_t status;
    see_thread();
    check_size(message);
    if (rank >= tm->size) {
        fatal("a request to rank %u of a team of %u", rank, tm->size);
    }
    if (in_handler()) {
        fatal("a request in a handler, where only replies may be sent");
    }
    const struct team *team = team_of(tm);
    unsigned route = ROUTE(team->from, team->index);
    if (team->from && !job.eps[team->from]->handlers) {
        fatal("a request from endpoint %u, which has no GEX_EP_CAPABILITY_AM", team->from);
    }
    gex_Rank_t peer = gex_TM_TranslateRankToJobrank(tm, rank);
    if (peer == job.rank) {
        if (message->kind == GEXL_LONG && message->size) {
            find(tm, rank, message->destination, message->size);
        }
        handle_here(message, args, tag_of(message, route), false);
        gexl_ended(lc);
        return 0;
    }
    if (message->kind == GEXL_LONG) {
        gex_RMA_PutBlocking(tm, rank, message->destination, message->source, message->size, 0);
    }
    params->peer = peer;
    fill(params, message, args, route, &made);
    status = flags & GEX_FLAG_IMMEDIATE ? llcl_try_am_async(job.context, params)
                                        : llcl_am_async(job.context, params);
    if (status > 0) {
        return 1;
    }
    if (status != LLCL_OK) {
        must_be_up("a request");
        must(status, "a request");
    }
    gexl_ended(lc);
    return 0;
}

int gexl_reply(gex_Token_t token, const struct gexl_message *message, const gex_AM_Arg_t *args, gex_Event_t *lc) {
    llcl_am_params_t *params = &of_replies;
    union made made;
    check_size(message);
    if (is_reply(token)) {
        fatal("handler %u replies to a reply", token->view.id);
    }
    if (token->replied) {
        fatal("handler %u replies twice to one request", token->view.id);
    }
    token->replied = true;
    unsigned asker = FROM(token->view.tag), route = ROUTE(token->ep->index, asker);
    gex_TM_t tm = route ? gex_TM_Pair(token->ep, (gex_EP_Index_t)asker) : gexl_world;
    if (!token->message) {
        if (message->kind == GEXL_LONG && message->size) {
            find(tm, job.rank, message->destination, message->size);
        }
        handle_here(message, args, tag_of(message, route), true);
        gexl_ended(lc);
        return 0;
    }
    if (message->kind == GEXL_LONG) {
        gex_RMA_PutBlocking(tm, token->view.source, message->destination, message->source, message->size, 0);
    }
    params->peer = token->view.source;
    fill(params, message, args, route, &made);
    must(llcl_am_respond(token->message, params), "a reply");
    gexl_ended(lc);
    return 0;
}

void am_notify(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t size) {
    const struct gexl_message message = {handler, GEXL_MEDIUM, 0, source, size, notifies};
    gexl_request(tm, rank, &message, NULL, GEX_EVENT_NOW, 0);
}
