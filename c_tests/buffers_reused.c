/* Broken if this fails: the library uses a buffer, a parameter struct or a list after the moment
 * from which the header allows the program to reuse it: the source of a write, of a box or of a
 * list when its completion fires, lists and structs when the call has returned, payloads of
 * messages when on_local fires, headers, replies and payloads of responses when the call has
 * returned. Each is overwritten at that moment; the peer must have the bytes that were there
 * before. BULK messages are those of am_bulk.
 * ranks: 1 2 3
 * cma: on off
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 60
 */
#include "am.h"

enum { PIECES = 64, ASK, ASK_BACK, ANSWER };
#define LARGEST_WRITE ((size_t)300000)
#define LARGEST_PAYLOAD ((size_t)65536)

enum way { WRITE_LOCAL, WRITE_COMPLETE, SIGNAL_LOCAL, SIGNAL_COMPLETE, BOX, LIST, WAYS };

/* A source, overwritten by the callback that says that it may be reused. */
struct source {
    unsigned char *bytes;
    size_t size;
    uint64_t overwritten;
};

static void overwrite(void *data, llcl_status_t status)
{
    struct source *source = data;
    CHECK_OK(status);
    memset(source->bytes, 0xee, source->size);
    word_add(&source->overwritten, 1);
}

/* Posts a request from a copy of its parameters, which is overwritten behind the call. */
#define POST_AND_FORGET(call, type, params)      \
    do {                                         \
        type copy_ = (params);                   \
        llcl_status_t status_;                   \
        while ((status_ = call(context, &copy_)) > 0) \
            sched_yield();                       \
        memset(&copy_, 0xee, sizeof copy_);      \
        CHECK_OK(status_);                       \
    } while (0)

static void post_plain(llcl_context_t *context, enum way way, uint32_t peer, uint32_t flags, llcl_local_t from,
                       llcl_remote_t to, llcl_remote_t signal, struct source *source, uint64_t *ended)
{
    llcl_completion_t reuse = llcl_callback(overwrite, source), end = llcl_add_on(ended);
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    llcl_write_signal_params_t with = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    int local = way == WRITE_LOCAL || way == SIGNAL_LOCAL;
    write.peer = with.peer = peer;
    write.flags = with.flags = flags;
    write.source = with.source = from;
    write.destination = with.destination = to;
    write.size = with.size = source->size;
    write.on_local = with.on_local = local ? reuse : end;
    write.on_complete = with.on_complete = local ? end : reuse;
    with.signal = signal;
    with.signal_value = 1;
    with.signal_op = LLCL_SIGNAL_ADD;
    if (way == WRITE_LOCAL || way == WRITE_COMPLETE)
        POST_AND_FORGET(llcl_try_write_async, llcl_write_params_t, write);
    else
        POST_AND_FORGET(llcl_try_write_signal_async, llcl_write_signal_params_t, with);
}

/* The same bytes as pieces, whose places at the peer lie one after the other. */
static void post_pieces(llcl_context_t *context, enum way way, uint32_t peer, uint32_t flags, llcl_local_t from,
                        llcl_remote_t to, struct source *source, uint64_t *ended)
{
    llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
    llcl_vector_params_t list = LLCL_VECTOR_PARAMS_INIT;
    llcl_local_span_t *locals = malloc(PIECES * sizeof *locals);
    llcl_remote_span_t *remotes = malloc(PIECES * sizeof *remotes);
    size_t piece = source->size / PIECES, i;
    CHECK(locals && remotes);
    box.peer = list.peer = peer;
    box.flags = list.flags = flags;
    box.local = from;
    box.remote = to;
    box.size = piece;
    box.dimensions = 1;
    box.extents[0] = PIECES;
    box.local_strides[0] = box.remote_strides[0] = piece;
    box.on_complete = list.on_complete = llcl_callback(overwrite, source);
    for (i = 0; i < PIECES; i++) {
        locals[i].place = llcl_local_at(from, i * piece);
        remotes[i].place = llcl_at(to, i * piece);
        locals[i].size = remotes[i].size = piece;
    }
    list.locals = locals;
    list.remotes = remotes;
    list.local_count = list.remote_count = PIECES;
    if (way == BOX)
        POST_AND_FORGET(llcl_try_write_strided_async, llcl_strided_params_t, box);
    else
        POST_AND_FORGET(llcl_try_writev_async, llcl_vector_params_t, list);
    memset(locals, 0xee, PIECES * sizeof *locals);
    memset(remotes, 0xee, PIECES * sizeof *remotes);
    free(locals);
    free(remotes);
    word_add(ended, 1);
}

/* One write in a slot of the peer's region that belongs to this rank. */
static void one_write(llcl_context_t *context, struct shared *target, enum way way, uint32_t flags, size_t size,
                      int from_region, uint64_t *signals)
{
    uint32_t me = llcl_rank(context), peer = (me + 1) % llcl_size(context);
    struct source source = {NULL, size, 0};
    struct shared mine;
    uint64_t ended = 0;
    llcl_local_t from;
    if (from_region) {
        region_make(context, from_region - 1, size, &mine);
        source.bytes = mine.bytes;
        from = llcl_region_local(mine.region, 0);
    } else {
        source.bytes = malloc(size);
        CHECK(source.bytes != NULL);
        from = llcl_local_address(source.bytes);
    }
    pattern_fill(source.bytes, size, me + (uint32_t)size);
    if (way < BOX)
        post_plain(context, way, peer, flags, from, remote_at(target, peer, 64), remote_at(target, peer, 0), &source,
                   &ended);
    else
        post_pieces(context, way, peer, flags, from, remote_at(target, peer, 64), &source, &ended);
    CHECK_OK(llcl_wait_word(context, &source.overwritten, 1, TEST_PATIENCE_NS));
    CHECK_OK(llcl_wait_word(context, &ended, 1, TEST_PATIENCE_NS));
    CHECK_OK(llcl_flush(context, peer));
    *signals += way == SIGNAL_LOCAL || way == SIGNAL_COMPLETE;
    if (from_region)
        region_drop(&mine);
    else
        free(source.bytes);
    fence(context);
    CHECK(pattern_holds(target->bytes + 64, size, (me + llcl_size(context) - 1) % llcl_size(context) + (uint32_t)size));
    CHECK_EQUAL(word_get(target->words), *signals);
    fence(context);
}

static void writes(llcl_context_t *context)
{
    static const size_t sizes[] = {64, 4096, 65536, LARGEST_WRITE / PIECES * PIECES};
    static const uint32_t flags[] = {0, LLCL_FLAG_DEFER, LLCL_FLAG_PARK};
    int kind, from, way;
    size_t s, f;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target;
        uint64_t signals = 0;
        share(context, kind, LARGEST_WRITE + 64, &target);
        for (way = 0; way < WAYS; way++)
            for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (f = 0; f < sizeof flags / sizeof flags[0]; f++)
                    for (from = 0; from < 3; from++)
                        one_write(context, &target, (enum way)way, flags[f], sizes[s], from, &signals);
        share_end(context, &target);
    }
}

struct rank {
    llcl_context_t *context;
    uint64_t come, answered;
    unsigned char *reply;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = 4; /* most wait in the library */
    config->am_handlers = am_handlers_by_mode();
}

/* Header: the size of the payload and its seed. */
static void check_message(const llcl_am_view_t *view)
{
    uint64_t order[2];
    CHECK_EQUAL(view->header_size, sizeof order);
    memcpy(order, view->header, sizeof order);
    CHECK_EQUAL(view->payload_size, order[0]);
    CHECK(pattern_holds(view->payload, view->payload_size, (uint32_t)order[1]));
}

static void ask(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    unsigned char reply[512];
    check_message(&view);
    if (view.flags & LLCL_AM_WANTS_REPLY) {
        pattern_fill(reply, sizeof reply, 7);
        CHECK_OK(llcl_am_reply(message, reply, sizeof reply));
        memset(reply, 0xee, sizeof reply);
    }
    word_add(&rank->come, 1);
}

static void ask_back(llcl_am_t *message, void *data)
{
    llcl_am_view_t view = am_view(message);
    uint64_t order[2];
    unsigned char *bytes = malloc(LARGEST_PAYLOAD);
    llcl_am_params_t am;
    (void)data;
    check_message(&view);
    memcpy(order, view.header, sizeof order);
    am = am_to(0, ANSWER, order, sizeof order);
    CHECK(bytes != NULL);
    pattern_fill(bytes, order[0], (uint32_t)order[1]);
    am.payload = bytes;
    am.payload_size = order[0];
    CHECK_OK(llcl_am_respond(message, &am));
    memset(&am, 0xee, sizeof am);
    memset(order, 0xee, sizeof order);
    memset(bytes, 0xee, LARGEST_PAYLOAD);
    free(bytes);
}

static void answer(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    check_message(&view);
    word_add(&rank->answered, 1);
}

/* Whether the payload is the caller's again when the call returns: see llcl_try_am_async. */
static int is_copied(uint32_t kind, uint32_t flags)
{
    return kind == LLCL_AM_MEDIUM && flags == 0 && !test_mode_is("offload");
}

static void one_message(struct rank *rank, uint32_t id, uint32_t kind, uint32_t flags, size_t size, uint32_t seed,
                        llcl_remote_t to, int wants_reply)
{
    llcl_context_t *context = rank->context;
    struct source *source = am_new(sizeof *source);
    uint64_t order[2], *ended = am_new(sizeof *ended);
    llcl_am_params_t am;
    order[0] = size;
    order[1] = seed;
    source->size = size;
    source->bytes = am_new(size + 1);
    pattern_fill(source->bytes, size, seed);
    am = am_to((llcl_rank(context) + 1) % llcl_size(context), id, order, sizeof order);
    am.flags = flags;
    am.kind = kind;
    am.payload_size = size;
    if (kind == LLCL_AM_MEDIUM)
        am.payload = source->bytes;
    else
        am.source = llcl_local_address(source->bytes);
    if (kind == LLCL_AM_LONG)
        am.destination = to;
    am.on_local = llcl_callback(overwrite, source);
    if (wants_reply) {
        am.reply = rank->reply;
        am.reply_capacity = 512;
        am.on_complete = llcl_store_on(ended);
    }
    POST_AND_FORGET(llcl_am_async, llcl_am_params_t, am);
    memset(order, 0xee, sizeof order);
    if (is_copied(kind, flags))
        CHECK_EQUAL(word_get(&source->overwritten), 1);
    if (wants_reply) {
        AM_AWAIT(context, ended, 1);
        CHECK(pattern_holds(rank->reply, 512, 7));
    }
    if (kind == LLCL_AM_LONG)
        AM_AWAIT(context, &source->overwritten, 1);
}

static void messages(llcl_context_t *context)
{
    static const size_t sizes[] = {0, 8, 4096, LARGEST_PAYLOAD};
    static const uint32_t flags[] = {0, LLCL_FLAG_DEFER, LLCL_FLAG_PARK};
    struct rank *rank = am_new(sizeof *rank);
    struct shared over;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), seed = 0, answers = 0;
    size_t s, f;
    int turn;
    rank->context = context;
    rank->reply = am_new(512);
    am_register(context, ASK, ask, rank);
    am_register(context, ASK_BACK, ask_back, rank);
    am_register(context, ANSWER, answer, rank);
    share(context, ALLOCATED, LARGEST_PAYLOAD, &over);
    for (turn = 0; turn < 10; turn++)
        for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (f = 0; f < sizeof flags / sizeof flags[0]; f++) {
                one_message(rank, ASK, LLCL_AM_MEDIUM, flags[f], sizes[s], ++seed, over.remote[peer], 0);
                one_message(rank, ASK, LLCL_AM_MEDIUM, flags[f], sizes[s], ++seed, over.remote[peer], 1);
                one_message(rank, ASK_BACK, LLCL_AM_MEDIUM, flags[f], sizes[s], ++seed, over.remote[peer], 0);
                answers++;
                /* Its bytes lie in the peer's memory until its end. */
                one_message(rank, ASK, LLCL_AM_LONG, flags[f], sizes[s], ++seed, over.remote[peer], 1);
            }
    AM_AWAIT(context, &rank->answered, answers);
    AM_AWAIT(context, &rank->come, seed - answers);
    share_end(context, &over);
}

static void run(llcl_context_t *context)
{
    writes(context);
    messages(context);
}

TEST_MAIN_CONFIG(run, configure)
