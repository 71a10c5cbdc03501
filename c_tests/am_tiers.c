/* Broken if this fails: one of the three tiers of active messages does not do what the other two
 * do, at some kind of message, with or without LLCL_FLAG_DEFER, with some kind of completion; a
 * completion fires not at all, twice or before its time; or LLCL_FLAG_DEFER lets one fire inside
 * the call.
 * ranks: 1 2 3
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

enum { TRY, ASYNC, BLOCKING, TIERS };
enum { LOCAL_ONLY, COMPLETE_ONLY, BOTH, NEITHER, WHICH };

static __thread int inside;

struct rank {
    llcl_context_t *context;
    struct shared target, mine;
    uint64_t handled;
};

struct watch {
    uint64_t fired, inside, answer;
    const uint64_t *told; /* where the answer is when on_complete fires */
};

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint64_t number, answer;
    memcpy(&number, am_header(message, NULL), sizeof number);
    answer = number + 1;
    CHECK_OK(llcl_am_reply(message, &answer, sizeof answer));
    word_add(&rank->handled, 1);
}

static void fire(void *data, llcl_status_t status)
{
    struct watch *watch = data;
    CHECK_OK(status);
    if (inside)
        word_add(&watch->inside, 1);
    if (watch->told)
        word_set(&watch->answer, *watch->told);
    word_add(&watch->fired, 1);
}

/* A completion of each kind that can be counted, and the word that counts it. */
static llcl_completion_t completion(uint32_t kind, struct watch *watch)
{
    switch (kind) {
    case LLCL_COMPLETE_CALL: return llcl_callback(fire, watch);
    case LLCL_COMPLETE_STORE: return llcl_store_on(&watch->fired);
    case LLCL_COMPLETE_ADD: return llcl_add_on(&watch->fired);
    default: return llcl_no_completion();
    }
}

static llcl_status_t post(llcl_context_t *context, const llcl_am_params_t *am, int tier)
{
    llcl_status_t status;
    inside = am->flags & LLCL_FLAG_DEFER;
    switch (tier) {
    case TRY: status = llcl_try_am_async(context, am); break;
    case ASYNC:
        inside = 0; /* it works for the lane, which may run callbacks */
        status = llcl_am_async(context, am);
        break;
    default: status = llcl_am(context, am); break;
    }
    inside = 0;
    return status;
}

static void one(struct rank *rank, uint32_t peer, uint32_t kind, int tier, uint32_t flags,
                uint32_t completing, int which, uint64_t number)
{
    struct watch local = {0, 0, 0, NULL}, complete = {0, 0, 0, NULL};
    llcl_am_params_t am = am_to(peer, 1, &number, sizeof number);
    uint64_t answer = 0;
    int on_local = which == LOCAL_ONLY || which == BOTH;
    int on_complete = which == COMPLETE_ONLY || which == BOTH;
    complete.told = &answer;
    am.kind = kind;
    am.flags = flags;
    am.payload_size = 100;
    if (kind == LLCL_AM_MEDIUM) {
        am.payload = rank->mine.bytes;
    } else {
        am.source = llcl_region_local(rank->mine.region, 0);
    }
    if (kind == LLCL_AM_LONG)
        am.destination = remote_at(&rank->target, peer, 128 * llcl_rank(rank->context));
    am.reply = &answer;
    am.reply_capacity = sizeof answer;
    if (tier != BLOCKING) {
        if (on_local)
            am.on_local = completion(completing, &local);
        if (on_complete)
            am.on_complete = completion(completing, &complete);
    }
    POST(post(rank->context, &am, tier));
    if (tier == BLOCKING) {
        CHECK_EQUAL(answer, number + 1);
        CHECK(local.fired == 0 && complete.fired == 0);
        return;
    }
    if (completing == LLCL_COMPLETE_NONE || !on_complete) {
        /* llcl_flush tells of the end of what has no completion. */
        CHECK_OK(llcl_flush(rank->context, peer));
        if (completing != LLCL_COMPLETE_NONE && on_local)
            AWAIT(&local.fired, 1);
    } else {
        AWAIT(&complete.fired, 1);
        if (on_local)
            AWAIT(&local.fired, 1);
    }
    CHECK_EQUAL(word_get(&answer), number + 1);
    CHECK_EQUAL(word_get(&local.fired), on_local && completing != LLCL_COMPLETE_NONE);
    CHECK_EQUAL(word_get(&complete.fired), on_complete && completing != LLCL_COMPLETE_NONE);
    CHECK(local.inside == 0 && complete.inside == 0);
    if (on_complete && completing == LLCL_COMPLETE_CALL)
        CHECK_EQUAL(complete.answer, number + 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), kind, flags, completing;
    uint64_t number = 100;
    int tier, which;
    rank->context = context;
    share(context, ALLOCATED, 4096, &rank->target);
    region_make(context, ALLOCATED, 4096, &rank->mine);
    am_register(context, 1, handle, rank);
    fence(context);
    for (kind = LLCL_AM_MEDIUM; kind <= LLCL_AM_BULK; kind++)
        for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++)
            for (completing = LLCL_COMPLETE_NONE; completing <= LLCL_COMPLETE_ADD; completing++)
                for (which = 0; which < WHICH; which++)
                    for (tier = 0; tier < TIERS; tier++)
                        one(rank, peer, kind, tier, flags, completing, which, number++);
    /* Those without a completion may come after the fence. */
    AWAIT(&rank->handled, number - 100);
    fence(context);
    CHECK_EQUAL(word_get(&rank->handled), number - 100);
    share_end(context, &rank->target);
    region_drop(&rank->mine);
}

TEST_MAIN(run)
