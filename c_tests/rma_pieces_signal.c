/* Broken if this fails: the signal of a write of many pieces is seen before one of its bytes, comes
 * not at all or twice, is not waited for by a flush, or is forgotten where there is nothing to
 * write; with data and word in memory of either kind, in each tier.
 * ranks: 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

enum { PIECES = 700, STRIDE = 24, BYTES = 1 << 15, TRY = 0, ASYNC, BLOCKING, DEFERRED, PARKED, TIERS_ };

struct scene {
    llcl_context_t *context;
    uint32_t peer;
    struct shared data[MEMORY_KINDS], words[MEMORY_KINDS];
    uint64_t source[PIECES], turn;
};

#define IN_TIER(name, params, tier)                                                                                  \
    do {                                                                                                             \
        (params).flags = (tier) == DEFERRED ? LLCL_FLAG_DEFER : (tier) == PARKED ? LLCL_FLAG_PARK : 0;               \
        if ((tier) == BLOCKING)                                                                                      \
            CHECK_OK(llcl_##name(in->context, &(params)));                                                           \
        else if ((tier) == ASYNC)                                                                                    \
            CHECK_OK(llcl_##name##_async(in->context, &(params)));                                                   \
        else                                                                                                         \
            POST(llcl_try_##name##_async(in->context, &(params)));                                                   \
    } while (0)

/* All pieces bear the number of the round. */
static void box(struct scene *in, int kind, int word_kind, int tier, size_t size)
{
    llcl_strided_params_t out = LLCL_STRIDED_PARAMS_INIT;
    out.peer = in->peer;
    out.local = llcl_local_address(in->source);
    out.remote = remote_at(&in->data[kind], in->peer, 0);
    out.size = size;
    out.dimensions = 2;
    out.extents[0] = PIECES / 7;
    out.extents[1] = 7;
    out.local_strides[0] = 8;
    out.local_strides[1] = PIECES / 7 * 8;
    out.remote_strides[0] = STRIDE;
    out.remote_strides[1] = PIECES / 7 * STRIDE;
    out.signal = remote_at(&in->words[word_kind], in->peer, 8);
    out.signal_op = LLCL_SIGNAL_SET;
    out.signal_value = in->turn;
    IN_TIER(write_strided, out, tier);
}

static void lists(struct scene *in, int kind, int word_kind, int tier)
{
    static __thread llcl_remote_span_t theirs[PIECES];
    llcl_local_span_t ours;
    llcl_vector_params_t out = LLCL_VECTOR_PARAMS_INIT;
    unsigned i;
    for (i = 0; i < PIECES; i++) {
        theirs[i].place = remote_at(&in->data[kind], in->peer, (uint64_t)(PIECES - 1 - i) * STRIDE);
        theirs[i].size = 8;
    }
    ours.place = llcl_local_address(in->source);
    ours.size = sizeof in->source;
    out.peer = in->peer;
    out.locals = &ours;
    out.local_count = 1;
    out.remotes = theirs;
    out.remote_count = PIECES;
    out.signal = remote_at(&in->words[word_kind], in->peer, 8);
    out.signal_op = LLCL_SIGNAL_ADD;
    out.signal_value = 1;
    IN_TIER(writev, out, tier);
}

static void receives(struct scene *in, int kind, int word_kind, uint64_t expected)
{
    unsigned i;
    CHECK_OK(llcl_wait_word(in->context, &in->words[word_kind].words[1], in->turn, TEST_PATIENCE_NS));
    for (i = 0; i < PIECES; i++)
        CHECK_EQUAL(word_get(&in->data[kind].words[i * STRIDE / 8]), expected);
    CHECK_EQUAL(word_get(&in->words[word_kind].words[1]), in->turn);
}

static void one_round(struct scene *in, int kind, int word_kind, int tier)
{
    unsigned form, i;
    for (form = 0; form < 3; form++) {
        in->turn++;
        if (llcl_rank(in->context) == 0) {
            for (i = 0; i < PIECES; i++)
                in->source[i] = in->turn;
            if (form == 1)
                lists(in, kind, word_kind, tier);
            else
                box(in, kind, word_kind, tier, form == 0 ? 8 : 0);
            /* What a flush has covered is there: a second one finds it so. */
            CHECK_OK(llcl_flush(in->context, in->peer));
            {
                uint64_t seen = 0;
                llcl_read_params_t back = LLCL_READ_PARAMS_INIT;
                back.peer = in->peer;
                back.source = remote_at(&in->words[word_kind], in->peer, 8);
                back.destination = llcl_local_address(&seen);
                back.size = 8;
                CHECK_OK(llcl_read(in->context, &back));
                CHECK_EQUAL(seen, in->turn);
            }
        } else {
            receives(in, kind, word_kind, form == 2 ? in->turn - 1 : in->turn);
        }
        fence(in->context);
    }
}

static void run(llcl_context_t *context)
{
    struct scene in = {0};
    int kind, word_kind, tier;
    in.context = context;
    in.peer = 1 - llcl_rank(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, BYTES, &in.data[kind]);
        share(context, kind, 64, &in.words[kind]);
    }
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        for (word_kind = 0; word_kind < MEMORY_KINDS; word_kind++) {
            in.turn = 0;
            if (llcl_rank(context) == 1)
                in.words[word_kind].words[1] = 0;
            fence(context);
            for (tier = 0; tier < TIERS_; tier++)
                one_round(&in, kind, word_kind, tier);
        }
    }
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share_end(context, &in.data[kind]);
        share_end(context, &in.words[kind]);
    }
}

/* Fewer than a box has pieces, so that the executor stops in the midst of it. */
static void configure(llcl_config_t *config)
{
    config->in_flight = 64;
}

TEST_MAIN_CONFIG(run, configure)
