/* Broken if this fails: a read or a write of many pieces (boxes with strides, lists) moves other
 * bytes than a loop over its pieces would, touches a byte between them, completes not at all, early
 * or twice; with any number of dimensions, strides of any order, more pieces than operations may be
 * in flight, in each tier and from inside a callback.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

enum { BYTES = 1 << 15, WRITE = 0, READ = 1, TRY = 0, ASYNC, BLOCKING, DEFERRED, TIERS_ };

struct scene {
    llcl_context_t *context;
    uint32_t peer, turn;
    struct shared theirs[MEMORY_KINDS];
    struct shared mine;
    unsigned char *found, *expected; /* the destination at the peer, and as a loop would leave it */
};

static void waits(struct scene *in, uint64_t *word)
{
    CHECK_OK(llcl_wait_word(in->context, word, 1, TEST_PATIENCE_NS));
    CHECK_EQUAL(word_get(word), 1);
}

#define IN_TIER(name, params, tier)                                                 \
    do {                                                                            \
        uint64_t ended_ = 0;                                                        \
        (params).flags = (tier) == DEFERRED ? LLCL_FLAG_DEFER : 0;                  \
        (params).on_complete = (tier) == BLOCKING ? llcl_no_completion() : llcl_add_on(&ended_); \
        if ((tier) == BLOCKING) {                                                   \
            CHECK_OK(llcl_##name(in->context, &(params)));                          \
        } else {                                                                    \
            if ((tier) == ASYNC)                                                    \
                CHECK_OK(llcl_##name##_async(in->context, &(params)));              \
            else                                                                    \
                POST(llcl_try_##name##_async(in->context, &(params)));              \
            waits(in, &ended_);                                                     \
            CHECK_OK(llcl_flush(in->context, in->peer));                            \
            CHECK_EQUAL(word_get(&ended_), 1);                                      \
        }                                                                           \
    } while (0)

/* What lies at the peer, by an operation of one piece. */
static void peek(struct scene *in, int kind, unsigned char *to)
{
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    read.peer = in->peer;
    read.source = remote_at(&in->theirs[kind], in->peer, 0);
    read.destination = llcl_local_address(to);
    read.size = BYTES;
    CHECK_OK(llcl_read(in->context, &read));
}

static void poke(struct scene *in, int kind, const unsigned char *from)
{
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    write.peer = in->peer;
    write.source = llcl_local_address(from);
    write.destination = remote_at(&in->theirs[kind], in->peer, 0);
    write.size = BYTES;
    CHECK_OK(llcl_write(in->context, &write));
}

/* Fresh bytes on both sides; the source's are returned. */
static const unsigned char *prepare(struct scene *in, int kind, int op)
{
    static __thread unsigned char there[BYTES];
    pattern_fill(there, BYTES, 2 * in->turn);
    pattern_fill(in->mine.bytes, BYTES, 2 * in->turn + 1);
    in->turn++;
    poke(in, kind, there);
    memcpy(in->expected, op == READ ? in->mine.bytes : there, BYTES);
    return op == READ ? there : in->mine.bytes;
}

static void compare(struct scene *in, int kind, int op)
{
    if (op == READ) {
        CHECK(memcmp(in->mine.bytes, in->expected, BYTES) == 0);
    } else {
        peek(in, kind, in->found);
        CHECK(memcmp(in->found, in->expected, BYTES) == 0);
    }
}

struct box {
    unsigned dimensions;
    size_t size;
    uint64_t extents[8], local[8], remote[8];
};

static const struct box boxes[] = {
    {1, 8, {5}, {8}, {8}},                                           /* contiguous on both sides */
    {1, 8, {70}, {16}, {24}},
    {1, 3, {100}, {3}, {7}},
    {1, 4, {300}, {4}, {8}},                                        /* more than may be in flight */
    {2, 8, {4, 6}, {8, 64}, {8, 32}},                                /* rows are contiguous, the box is at the peer */
    {2, 4, {6, 9}, {4, 24}, {36, 4}},                             /* transposes */
    {2, 16, {3, 5}, {100, 400}, {16, 48}},
    {3, 5, {3, 4, 5}, {11, 50, 700}, {5, 15, 60}},
    {3, 1, {1, 1, 1}, {0, 0, 0}, {9, 9, 9}},
    {3, 2, {2, 0, 2}, {2, 4, 8}, {2, 4, 8}},                         /* nothing */
    {2, 0, {2, 2}, {2, 4}, {2, 4}},                                  /* nothing */
    {8, 1, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 3, 7, 15, 31, 63, 127, 255}, {1, 2, 4, 8, 16, 32, 64, 128}},
    {8, 8, {2, 1, 2, 3, 1, 1, 1, 2}, {8, 0, 16, 32, 0, 5, 0, 4096}, {8, 7, 16, 40, 1, 1, 1, 8192}},
};

static void strided(struct scene *in, const struct box *box, int kind, int op, int tier)
{
    llcl_strided_params_t params = LLCL_STRIDED_PARAMS_INIT;
    const unsigned char *source = prepare(in, kind, op);
    const uint64_t *from = op == READ ? box->remote : box->local, *to = op == READ ? box->local : box->remote;
    uint64_t at[8] = {0}, a, b;
    unsigned i = 0;
    int nothing = box->size == 0;
    params.peer = in->peer;
    params.local = llcl_region_local(in->mine.region, 24);
    params.remote = remote_at(&in->theirs[kind], in->peer, 24);
    params.size = box->size;
    params.dimensions = box->dimensions;
    for (i = 0; i < 8; i++) { /* what lies behind the dimensions is not looked at */
        params.extents[i] = i < box->dimensions ? box->extents[i] : UINT64_MAX;
        params.local_strides[i] = i < box->dimensions ? box->local[i] : UINT64_MAX;
        params.remote_strides[i] = i < box->dimensions ? box->remote[i] : UINT64_MAX;
        nothing = nothing || params.extents[i] == 0;
    }
    while (!nothing) {
        for (a = b = 24, i = 0; i < box->dimensions; i++) {
            a += at[i] * from[i];
            b += at[i] * to[i];
        }
        memcpy(in->expected + b, source + a, box->size);
        for (i = 0; i < box->dimensions && ++at[i] == box->extents[i]; i++)
            at[i] = 0;
        nothing = i == box->dimensions;
    }
    if (op == READ)
        IN_TIER(read_strided, params, tier);
    else
        IN_TIER(write_strided, params, tier);
    compare(in, kind, op);
}

/* Lists whose places begin and end elsewhere on the two sides. */
static void lists(struct scene *in, unsigned count, int kind, int op, int tier)
{
    enum { MOST = 400 };
    static __thread llcl_local_span_t ours[MOST];
    static __thread llcl_remote_span_t theirs[MOST];
    llcl_vector_params_t params = LLCL_VECTOR_PARAMS_INIT;
    const unsigned char *source = prepare(in, kind, op);
    size_t total = 0, left, at, a = 0, b = 0, in_a = 0, in_b = 0;
    unsigned i, there = 0;
    CHECK(count <= MOST);
    for (i = 0; i < count; i++) {
        ours[i].size = i % 5 * 3 % 16; /* 0 among them */
        ours[i].place = llcl_region_local(in->mine.region, BYTES - 20 * (i + 1));
        total += ours[i].size;
    }
    for (left = total, at = 1; left > 0; there++) {
        CHECK(there < MOST);
        theirs[there].size = left < 17 ? left : 17;
        theirs[there].place = remote_at(&in->theirs[kind], in->peer, at);
        left -= theirs[there].size;
        at += 19;
    }
    for (; total > 0; total--) {
        while (in_a == ours[a].size)
            a++, in_a = 0;
        while (in_b == theirs[b].size)
            b++, in_b = 0;
        if (op == READ)
            in->expected[BYTES - 20 * (a + 1) + in_a++] = source[1 + 19 * b + in_b++];
        else
            in->expected[1 + 19 * b + in_b++] = source[BYTES - 20 * (a + 1) + in_a++];
    }
    params.peer = in->peer;
    params.locals = count ? ours : NULL;
    params.local_count = count;
    params.remotes = there ? theirs : NULL;
    params.remote_count = there;
    if (op == READ)
        IN_TIER(readv, params, tier);
    else
        IN_TIER(writev, params, tier);
    compare(in, kind, op);
}

/* The first callback posts the second operation, with a callback of its own. */
struct chain {
    struct scene *in;
    int kind;
    llcl_strided_params_t params;
    uint64_t ended;
};

static void second(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    CHECK_OK(status);
    word_add(&chain->ended, 1);
}

static void first(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    CHECK_OK(status);
    CHECK_STATUS(llcl_write_strided(chain->in->context, &chain->params), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_write_strided_async(chain->in->context, &chain->params), LLCL_ERR_STATE);
    chain->params.on_complete = llcl_callback(second, chain);
    chain->params.size = 1;
    POST(llcl_try_write_strided_async(chain->in->context, &chain->params));
}

static void callbacks(struct scene *in, int kind)
{
    struct chain chain = {0};
    chain.in = in;
    chain.params.peer = in->peer;
    chain.params.local = llcl_region_local(in->mine.region, 0);
    chain.params.remote = remote_at(&in->theirs[kind], in->peer, 0);
    chain.params.size = 2;
    chain.params.dimensions = 1;
    chain.params.extents[0] = 300;
    chain.params.local_strides[0] = chain.params.remote_strides[0] = 9;
    chain.params.on_complete = llcl_callback(first, &chain);
    POST(llcl_try_write_strided_async(in->context, &chain.params));
    while (word_get(&chain.ended) == 0)
        CHECK(llcl_progress(in->context) >= 0);
}

static void run(llcl_context_t *context)
{
    struct scene in = {0};
    unsigned i;
    int kind, op;
    in.context = context;
    in.peer = (llcl_rank(context) + 1) % llcl_size(context);
    in.found = malloc(BYTES);
    in.expected = malloc(BYTES);
    CHECK(in.found != NULL && in.expected != NULL);
    region_make(context, ALLOCATED, BYTES, &in.mine);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, BYTES, &in.theirs[kind]);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        for (op = WRITE; op <= READ; op++) {
            for (i = 0; i < sizeof boxes / sizeof boxes[0]; i++)
                strided(&in, &boxes[i], kind, op, (int)(i + (unsigned)op) % TIERS_);
            for (i = 0; i < TIERS_; i++)
                strided(&in, &boxes[7], kind, op, (int)i);
            for (i = 0; i < TIERS_; i++)
                lists(&in, i == 0 ? 0 : i == 1 ? 400 : 7 * i, kind, op, (int)i);
        }
        callbacks(&in, kind);
    }
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &in.theirs[kind]);
    region_drop(&in.mine);
    free(in.found);
    free(in.expected);
}

/* So few that boxes and lists fill the table, and the executor must go on where it stopped. */
static void configure(llcl_config_t *config)
{
    config->in_flight = 64;
}

TEST_MAIN_CONFIG(run, configure)
