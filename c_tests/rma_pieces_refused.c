/* Broken if this fails: a read or a write of many pieces with NULL, 0 or 9 dimensions, a box or a
 * list that leaves its region or 64 bits, a negative stride, pieces of the destination that
 * overlap, a stale key, unknown flags or a wrong completion is accepted, crashes or moves a byte;
 * or a refusal comes without a sentence that names the blocking form, the parameter and its value.
 * ranks: 1 2
 * modes: auto offload direct
 * threads: yes
 */
#include "shared.h"

enum { BYTES = 4096 };

static struct shared target, mine;
static unsigned char kept[2][BYTES];

/* So many bytes at the beginning of both sides may have moved before a refusal: a list is copied as
 * it is read. */
static size_t may_move;

/* What lies on both sides before a refusal is what lies there afterwards. */
static void keep(void)
{
    memcpy(kept[0], target.bytes, BYTES);
    memcpy(kept[1], mine.bytes, BYTES);
}

static int nothing_moved(void)
{
    size_t i;
    for (i = 0; i < BYTES; i++) {
        int same = kept[0][i] == target.bytes[i] && kept[1][i] == mine.bytes[i];
        int moved = target.bytes[i] == mine.bytes[i] && (mine.bytes[i] == kept[0][i] || mine.bytes[i] == kept[1][i]);
        if (!same && !(i < may_move && moved))
            return 0;
    }
    return 1;
}

#define NULLS(name, type)                                                           \
    do {                                                                            \
        type zero_ = {0};                                                           \
        CHECK_STATUS(llcl_try_##name##_async(context, NULL), LLCL_ERR_INVALID);     \
        CHECK_STATUS(llcl_##name##_async(context, NULL), LLCL_ERR_INVALID);         \
        CHECK_STATUS(llcl_##name(context, NULL), LLCL_ERR_INVALID);                 \
        CHECK_STATUS(llcl_try_##name##_async(NULL, &zero_), LLCL_ERR_INVALID);      \
        CHECK_STATUS(llcl_##name##_async(NULL, &zero_), LLCL_ERR_INVALID);          \
        CHECK_STATUS(llcl_##name(NULL, &zero_), LLCL_ERR_INVALID);                  \
    } while (0)

/* The sentence begins with the blocking form, whatever was called. */
static int says(const char *word)
{
    const char *said = llcl_last_error();
    return strncmp(said, "llcl_", 5) == 0 && !strstr(said, "_try_") && !strstr(said, "_async") && strstr(said, word);
}

#define REFUSED_BY(call, expected, word)                                            \
    do {                                                                            \
        CHECK_STATUS(call, expected);                                               \
        CHECK(says(word));                                                          \
    } while (0)
/* Both directions, three tiers; the sentence names what is wrong. */
#define REFUSED(what, params, expected, word)                                       \
    do {                                                                            \
        keep();                                                                     \
        REFUSED_BY(llcl_try_write_##what##_async(context, &(params)), expected, word); \
        REFUSED_BY(llcl_try_read_##what##_async(context, &(params)), expected, word); \
        REFUSED_BY(llcl_write_##what##_async(context, &(params)), expected, word);  \
        REFUSED_BY(llcl_read_##what##_async(context, &(params)), expected, word);   \
        REFUSED_BY(llcl_write_##what(context, &(params)), expected, word);          \
        REFUSED_BY(llcl_read_##what(context, &(params)), expected, word);           \
        CHECK(nothing_moved());                                                     \
    } while (0)
#define llcl_try_write_v_async llcl_try_writev_async
#define llcl_try_read_v_async llcl_try_readv_async
#define llcl_write_v_async llcl_writev_async
#define llcl_read_v_async llcl_readv_async
#define llcl_write_v llcl_writev
#define llcl_read_v llcl_readv

static llcl_strided_params_t right(llcl_context_t *context)
{
    llcl_strided_params_t it = LLCL_STRIDED_PARAMS_INIT;
    it.peer = llcl_rank(context);
    it.local = llcl_region_local(mine.region, 0);
    it.remote = llcl_region_remote(target.region, 0);
    it.size = 8;
    it.dimensions = 2;
    it.extents[0] = it.extents[1] = 4;
    it.local_strides[0] = it.remote_strides[0] = 16;
    it.local_strides[1] = it.remote_strides[1] = 64;
    return it;
}

/* A read has no signal, and a write none at a place that is no word; nothing moves then. */
static void signals_refused(llcl_context_t *context, llcl_strided_params_t it)
{
    llcl_remote_t signal = it.signal;
    keep();
    it.signal_op = LLCL_SIGNAL_SET;
    CHECK_STATUS(llcl_try_read_strided_async(context, &it), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "read") != NULL);
    it.signal.offset = 4;
    REFUSED_BY(llcl_try_write_strided_async(context, &it), LLCL_ERR_INVALID, "signal: offset is 4");
    it.signal.offset = BYTES;
    REFUSED_BY(llcl_write_strided_async(context, &it), LLCL_ERR_RANGE, "signal: offset 4096");
    it.signal = signal;
    it.signal.key += (uint64_t)1 << 40;
    REFUSED_BY(llcl_write_strided(context, &it), LLCL_ERR_KEY, "signal: key");
    CHECK(nothing_moved());
}

static void strided(llcl_context_t *context)
{
    static uint64_t word;
    llcl_strided_params_t it = right(context);
    it.dimensions = 0;
    REFUSED(strided, it, LLCL_ERR_INVALID, "dimensions is 0");
    it.dimensions = LLCL_STRIDED_DIMENSIONS + 1;
    REFUSED(strided, it, LLCL_ERR_INVALID, "dimensions is 9");
    it.dimensions = UINT32_MAX;
    REFUSED(strided, it, LLCL_ERR_INVALID, "dimensions");
    it = right(context);
    it.signal_op = 3;
    REFUSED(strided, it, LLCL_ERR_INVALID, "signal_op is 3");
    it.signal_op = 257; /* LLCL_SIGNAL_SET in its lower byte */
    REFUSED(strided, it, LLCL_ERR_INVALID, "signal_op is 257");
    it.signal = it.remote;
    signals_refused(context, it);
    it = right(context);
    it.flags = 8;
    REFUSED(strided, it, LLCL_ERR_INVALID, "flags has 0x8,");
    it = right(context);
    it.peer = llcl_size(context);
    REFUSED(strided, it, LLCL_ERR_INVALID, "peer");
    it = right(context);
    it.on_complete.kind = 77;
    REFUSED(strided, it, LLCL_ERR_INVALID, "");
    it.on_complete = llcl_add_on(&word);
    CHECK_STATUS(llcl_write_strided(context, &it), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_read_strided(context, &it), LLCL_ERR_INVALID);
    CHECK_EQUAL(word, 0);
    /* Out of range by one byte, on each side; and exactly to the end. */
    it = right(context);
    it.remote_strides[1] = (BYTES - 3 * 16 - 8) / 3;
    it.local_strides[1] = 256;
    CHECK_OK(llcl_write_strided(context, &it));
    it.remote.offset += (BYTES - 3 * 16 - 8) % 3 + 1;
    REFUSED(strided, it, LLCL_ERR_RANGE, "leave the region");
    it = right(context);
    it.local.offset = BYTES - 3 * 64 - 3 * 16 - 8;
    CHECK_OK(llcl_write_strided(context, &it));
    it.local.offset++;
    REFUSED(strided, it, LLCL_ERR_RANGE, "leave the region");
    /* Negative strides, and products and sums that leave 64 bits. */
    it = right(context);
    it.remote_strides[1] = (uint64_t)-64;
    REFUSED(strided, it, LLCL_ERR_RANGE, "strides");
    it = right(context);
    it.local_strides[0] = (uint64_t)1 << 63;
    REFUSED(strided, it, LLCL_ERR_RANGE, "strides");
    it = right(context);
    it.extents[0] = it.extents[1] = (uint64_t)1 << 32;
    REFUSED(strided, it, LLCL_ERR_RANGE, "strides");
    it = right(context);
    it.extents[0] = 2;
    it.remote_strides[0] = it.local_strides[0] = UINT64_MAX - 3;
    REFUSED(strided, it, LLCL_ERR_RANGE, "strides");
    it = right(context);
    it.size = SIZE_MAX;
    REFUSED(strided, it, LLCL_ERR_RANGE, "strides");
    it = right(context);
    it.remote.offset = UINT64_MAX - 7;
    REFUSED(strided, it, LLCL_ERR_RANGE, "leave the region");
    /* Overlap where it is written; where it is read it is a broadcast. */
    it = right(context);
    it.remote_strides[0] = it.local_strides[0] = 0;
    it.extents[0] = (uint64_t)1 << 50;
    REFUSED(strided, it, LLCL_ERR_INVALID, "overlap");
    it = right(context);
    it.local_strides[0] = it.local_strides[1] = 0;
    CHECK_OK(llcl_write_strided(context, &it));
    CHECK_STATUS(llcl_read_strided(context, &it), LLCL_ERR_INVALID);
    /* Neighbours in a row overlap, though the rows lie far apart. */
    it = right(context);
    it.remote_strides[0] = it.local_strides[0] = 7;
    REFUSED(strided, it, LLCL_ERR_INVALID, "a stride is 7,");
    it.remote_strides[0] = 8;
    CHECK_OK(llcl_write_strided(context, &it));
    CHECK_STATUS(llcl_read_strided(context, &it), LLCL_ERR_INVALID);
    /* Nothing is moved, and both places are looked at all the same. */
    it = right(context);
    it.extents[1] = 0;
    it.local.key += (uint64_t)1 << 40;
    REFUSED(strided, it, LLCL_ERR_KEY, "key");
    it.local.key -= (uint64_t)1 << 40;
    it.remote.key += (uint64_t)1 << 40;
    REFUSED(strided, it, LLCL_ERR_KEY, "key");
    it = right(context);
    it.local = llcl_local_address(NULL);
    REFUSED(strided, it, LLCL_ERR_KEY, "key");
}

static void lists(llcl_context_t *context)
{
    llcl_vector_params_t it = LLCL_VECTOR_PARAMS_INIT;
    llcl_local_span_t ours[2];
    llcl_remote_span_t theirs[2];
    unsigned i;
    for (i = 0; i < 2; i++) {
        ours[i].place = llcl_region_local(mine.region, 64 * i);
        theirs[i].place = llcl_region_remote(target.region, 64 * i);
        ours[i].size = theirs[i].size = 8;
    }
    it.peer = llcl_rank(context);
    it.locals = ours;
    it.remotes = theirs;
    it.local_count = it.remote_count = 2;
    it.locals = NULL;
    REFUSED(v, it, LLCL_ERR_INVALID, "locals is NULL");
    it.locals = ours;
    it.remotes = NULL;
    REFUSED(v, it, LLCL_ERR_INVALID, "remotes is NULL");
    it.remotes = theirs;
    it.remote_count = SIZE_MAX;
    REFUSED(v, it, LLCL_ERR_RANGE, "remotes");
    it.remote_count = 1;
    may_move = 8;
    REFUSED(v, it, LLCL_ERR_INVALID, "same number");
    may_move = 0;
    it.remote_count = 2;
    it.flags = 8;
    REFUSED(v, it, LLCL_ERR_INVALID, "flags has 0x8,");
    it.flags = 0;
    ours[0].size = theirs[0].size = SIZE_MAX;
    REFUSED(v, it, LLCL_ERR_RANGE, "sizes");
    ours[0].size = theirs[0].size = SIZE_MAX - 8;
    REFUSED(v, it, LLCL_ERR_RANGE, "");
    ours[0].size = theirs[0].size = 8;
    /* The spans before the first wrong one may have moved, those behind it have not, and the
     * sentence names it. */
    may_move = 8;
    theirs[1].place.offset = BYTES - 7;
    REFUSED(v, it, LLCL_ERR_RANGE, "remotes[1]: ");
    CHECK(strstr(llcl_last_error(), "leave the region") != NULL);
    theirs[1].place.offset = 64;
    ours[1].place.offset = BYTES - 7;
    REFUSED(v, it, LLCL_ERR_RANGE, "locals[1]: ");
    CHECK(strstr(llcl_last_error(), "leave the region") != NULL);
    ours[1].place.offset = 64;
    theirs[1].place.key += (uint64_t)1 << 40;
    REFUSED(v, it, LLCL_ERR_KEY, "remotes[1]: ");
    CHECK(strstr(llcl_last_error(), "key") != NULL);
    theirs[1].place.key -= (uint64_t)1 << 40;
    /* Also if the lists are cut in different ways. */
    ours[0].size = 4;
    theirs[1].size = 4;
    ours[1].place.key += (uint64_t)1 << 40;
    REFUSED(v, it, LLCL_ERR_KEY, "locals[1]: ");
    ours[1].place.key -= (uint64_t)1 << 40;
    may_move = 0;
    ours[0].place.offset = UINT64_MAX;
    REFUSED(v, it, LLCL_ERR_RANGE, "locals[0]: ");
}

static void run(llcl_context_t *context)
{
    if (test_in_threads() && llcl_rank(context) != 0) {
        fence(context);
        return;
    }
    /* Each rank is its own peer: what is wrong is wrong before any peer is asked. */
    region_make(context, ALLOCATED, BYTES, &target);
    region_make(context, ALLOCATED, BYTES, &mine);
    NULLS(write_strided, llcl_strided_params_t);
    NULLS(read_strided, llcl_strided_params_t);
    NULLS(writev, llcl_vector_params_t);
    NULLS(readv, llcl_vector_params_t);
    pattern_fill(target.bytes, BYTES, 1);
    pattern_fill(mine.bytes, BYTES, 2);
    strided(context);
    lists(context);
    CHECK_OK(llcl_flush_all(context));
    CHECK(nothing_moved());
    region_drop(&target);
    region_drop(&mine);
    fence(context);
}

TEST_MAIN(run)
