/* Negotiated-payload active messages. Each thread has one source descriptor, which Prepare fills
 * and Commit or Cancel ends, and a buffer for clients that pass none to Prepare. */
#include "internal.h"

#include <stdlib.h>

struct gexl_source {
    bool prepared;
    bool is_reply;
    uint8_t kind;
    unsigned args;
    gex_TM_t tm;
    gex_Rank_t rank;
    gex_Token_t token;
    const void *address;
    size_t size;
    void *destination; /* the one passed to Prepare, or NULL */
    gex_Event_t *lc;
    void *own; /* this thread's buffer; NULL: not allocated yet, or in use by a Commit */
};

static __thread struct gexl_source source;

void prepare_thread_ends(void) {
    free(source.own);
    source.own = NULL;
}

/* see_thread(): a thread that only prepares and cancels frees its buffer at its end, too. */
static const void *own_buffer(void) {
    see_thread();
    if (!source.own && !(source.own = malloc(job.medium))) {
        fatal("gex_AM_Prepare: no memory for a buffer of %zu bytes", job.medium);
    }
    return source.own;
}

static gex_AM_SrcDesc_t prepare(uint8_t kind, const void *buffer, size_t least, size_t most, void *destination,
                                gex_Event_t *lc, unsigned n) {
    size_t limit = kind == GEXL_LONG && buffer ? gex_AM_LUBRequestLong() : job.medium;
    if (source.prepared) {
        fatal("gex_AM_Prepare: this thread has prepared a message that it has not committed");
    }
    if (least > most || least > limit) {
        fatal("gex_AM_Prepare: at least %zu bytes and at most %zu, where the limit is %zu", least, most, limit);
    }
    if (n > 16) {
        fatal("gex_AM_Prepare: %u arguments, at most 16", n);
    }
    source.prepared = true;
    source.is_reply = false;
    source.kind = kind;
    source.args = n;
    source.address = buffer ? buffer : own_buffer();
    source.size = most < limit ? most : limit;
    source.destination = destination;
    source.lc = lc;
    return &source;
}

static gex_AM_SrcDesc_t to_request(gex_AM_SrcDesc_t prepared, gex_TM_t tm, gex_Rank_t rank) {
    prepared->tm = tm;
    prepared->rank = rank;
    return prepared;
}

static gex_AM_SrcDesc_t to_reply(gex_AM_SrcDesc_t prepared, gex_Token_t token) {
    prepared->is_reply = true;
    prepared->token = token;
    return prepared;
}

gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                             size_t most, gex_Event_t *lc, gex_Flags_t flags, unsigned n) {
    (void)flags;
    return to_request(prepare(GEXL_MEDIUM, buffer, least, most, NULL, lc, n), tm, rank);
}
gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                           gex_Event_t *lc, gex_Flags_t flags, unsigned n) {
    (void)flags;
    return to_reply(prepare(GEXL_MEDIUM, buffer, least, most, NULL, lc, n), token);
}
gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                           size_t most, void *destination, gex_Event_t *lc, gex_Flags_t flags,
                                           unsigned n) {
    (void)flags;
    return to_request(prepare(GEXL_LONG, buffer, least, most, destination, lc, n), tm, rank);
}
gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                         void *destination, gex_Event_t *lc, gex_Flags_t flags, unsigned n) {
    (void)flags;
    return to_reply(prepare(GEXL_LONG, buffer, least, most, destination, lc, n), token);
}

void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t prepared) { return (void *)prepared->address; }
size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t prepared) { return prepared->size; }

static void check_prepared(gex_AM_SrcDesc_t prepared, const char *call) {
    if (prepared != &source || !source.prepared) {
        fatal("%s: this thread has prepared no such message", call);
    }
}

static int cancel(gex_AM_SrcDesc_t prepared, const char *call, uint8_t kind, bool is_reply) {
    check_prepared(prepared, call);
    if (source.kind != kind || source.is_reply != is_reply) {
        fatal("%s: this thread has prepared a %s%s", call, source.is_reply ? "Reply" : "Request",
              source.kind == GEXL_LONG ? "Long" : "Medium");
    }
    source.prepared = false;
    return GASNET_OK;
}
int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags) {
    (void)flags;
    return cancel(prepared, "gex_AM_CancelRequestMedium", GEXL_MEDIUM, false);
}
int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t prepared, gex_Flags_t flags) {
    (void)flags;
    return cancel(prepared, "gex_AM_CancelReplyMedium", GEXL_MEDIUM, true);
}
int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags) {
    (void)flags;
    return cancel(prepared, "gex_AM_CancelRequestLong", GEXL_LONG, false);
}
int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t prepared, gex_Flags_t flags) {
    (void)flags;
    return cancel(prepared, "gex_AM_CancelReplyLong", GEXL_LONG, true);
}

/* gexl_request() may poll while it waits for credit, and a handler that runs then may prepare a
 * reply. So the request keeps the buffer, and the reply gets another one. */
static int commit_request(const struct gexl_message *message, const gex_AM_Arg_t *args, gex_Flags_t flags) {
    const struct gexl_source before = source;
    bool owns = source.address == source.own;
    source.prepared = false;
    if (owns) {
        source.own = NULL;
    }
    if (gexl_request(before.tm, before.rank, message, args, before.lc, flags)) {
        if (source.own != before.own) {
            free(source.own);
        }
        source = before; /* the client may commit or cancel it */
        return 1;
    }
    if (owns && source.own) {
        free(before.own);
    } else if (owns) {
        source.own = before.own;
    }
    return 0;
}

int gexl_commit(gex_AM_SrcDesc_t prepared, gex_AM_Index_t handler, size_t size, void *destination, gex_Flags_t flags,
                unsigned n, const gex_AM_Arg_t *args) {
    check_prepared(prepared, "gex_AM_Commit");
    struct gexl_message message = {handler, source.kind, (uint8_t)n, source.address, size, destination};
    if (size > source.size || n != source.args) {
        fatal("gex_AM_Commit: %zu bytes and %u arguments, prepared were %zu and %u", size, n, source.size,
              source.args);
    }
    if (source.destination && source.destination != destination) {
        fatal("gex_AM_Commit: another destination than the one prepared");
    }
    if (source.is_reply) {
        source.prepared = false;
        return gexl_reply(source.token, &message, args, source.lc);
    }
    return commit_request(&message, args, flags);
}
