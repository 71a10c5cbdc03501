/* Broken if this fails: a store or a load of llcl_inline.h goes to another place, a place outside
 * of the window is touched without the call's checks, or memory that is not mapped cannot be
 * reached by it.
 * ranks: 1 2 3
 * modes: auto
 * threads: yes
 */
#include "shared.h"
#include "llcl_inline.h"

#define SIZE ((size_t)4096)
#define BEGIN ((uint64_t)64) /* of the window in the region */
#define END ((uint64_t)1024)

static void places(llcl_context_t *context, int kind)
{
    uint32_t ranks = llcl_size(context), peer = (llcl_rank(context) + 1) % ranks, i;
    unsigned char bytes[64], back[64];
    struct shared shared;
    llcl_window_t window, wrong;
    uint64_t value = 0;
    share(context, kind, SIZE, &shared);
    window = llcl_window(context, peer, remote_at(&shared, peer, BEGIN), END - BEGIN);
    CHECK(ranks == 1 || (window.base != NULL) == (kind == ALLOCATED && is_near(context, peer)));
    /* In the window: the first and the last word. */
    CHECK_OK(llcl_window_put64(window, 0, 11));
    CHECK_OK(llcl_window_put64(window, END - BEGIN - 8, 12));
    /* Words across its end, behind it and not aligned: the region's end counts. */
    CHECK_OK(llcl_window_put64(window, END - BEGIN, 13));
    CHECK_OK(llcl_window_put64(window, SIZE - BEGIN - 8, 14));
    CHECK_OK(llcl_window_put64(window, 101, 15));
    CHECK_STATUS(llcl_window_put64(window, SIZE - BEGIN - 7, 16), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_window_put64(window, UINT64_MAX - 3, 16), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_window_get64(window, SIZE, &value), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_window_put(window, SIZE - BEGIN - 63, bytes, 64), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_window_get(window, SIZE - BEGIN - 63, back, 64), LLCL_ERR_RANGE);
    CHECK_OK(llcl_window_get64(window, 0, &value));
    CHECK_EQUAL(value, 11);
    CHECK_OK(llcl_window_get64(window, 101, &value));
    CHECK_EQUAL(value, 15);
    pattern_fill(bytes, sizeof bytes, 3);
    for (i = 0; i <= 64; i++) {
        memset(back, 0, sizeof back);
        CHECK_OK(llcl_window_put(window, 200 + i, bytes, i));
        CHECK_OK(llcl_window_get(window, 200 + i, back, i));
        CHECK(memcmp(bytes, back, i) == 0);
    }
    CHECK_OK(llcl_window_put(window, END - BEGIN - 32, bytes, 64)); /* across the end */
    CHECK_OK(llcl_window_get(window, END - BEGIN - 32, back, 64));
    CHECK(memcmp(bytes, back, 64) == 0);
    fence(context);
    CHECK_EQUAL(shared.words[BEGIN / 8], 11);
    CHECK_EQUAL(shared.words[SIZE / 8 - 1], 14);
    CHECK(memcmp(shared.bytes + END - 32, bytes, 64) == 0);
    CHECK(bytes_are(shared.bytes, BEGIN, 0));
    CHECK(bytes_are(shared.bytes + END + 32, SIZE - END - 40, 0));
    fence(context); /* The peer has looked at the words that are written again below. */
    /* What is wrong is answered by the use. */
    wrong = llcl_window(context, peer, remote_at(&shared, peer, SIZE - 8), 16);
    CHECK(wrong.base == NULL);
    CHECK_OK(llcl_window_put64(wrong, 0, 14));
    CHECK_STATUS(llcl_window_put64(wrong, 8, 1), LLCL_ERR_RANGE);
    wrong.remote.key = ~wrong.remote.key;
    wrong = llcl_window(context, peer, wrong.remote, 8);
    CHECK_STATUS(llcl_window_put64(wrong, 0, 1), LLCL_ERR_KEY);
    wrong = llcl_window(context, ranks, shared.remote[peer], 8);
    CHECK_STATUS(llcl_window_get64(wrong, 0, &value), LLCL_ERR_INVALID);
    wrong = llcl_window(NULL, peer, shared.remote[peer], 8);
    CHECK_STATUS(llcl_window_get64(wrong, 0, &value), LLCL_ERR_INVALID);
    share_end(context, &shared);
}

/* A word is seen after what was written before it. */
static void order(llcl_context_t *context)
{
    uint32_t ranks = llcl_size(context), me = llcl_rank(context), round;
    uint32_t rounds = is_near(context, (me + 1) % ranks) && is_near(context, (me + ranks - 1) % ranks) ? 2000 : 200;
    struct shared shared;
    llcl_window_t window;
    uint64_t bytes[8];
    share(context, ALLOCATED, SIZE, &shared);
    window = llcl_window(context, (me + 1) % ranks, shared.remote[(me + 1) % ranks], SIZE);
    for (round = 1; round <= rounds; round++) {
        int i;
        for (i = 0; i < 8; i++)
            bytes[i] = round;
        CHECK_OK(llcl_window_put(window, 64 + round % 2 * 64, bytes, sizeof bytes));
        CHECK_OK(llcl_window_put64(window, 0, round));
        AWAIT(shared.words, round);
        for (i = 0; i < 8; i++)
            CHECK_EQUAL(shared.words[8 + round % 2 * 8 + (uint32_t)i], round);
        /* The next but one round writes here: all have looked. */
        if (round % 2 == 0)
            CHECK_OK(llcl_barrier(context));
    }
    share_end(context, &shared);
}

static void run(llcl_context_t *context)
{
    places(context, ALLOCATED);
    places(context, REGISTERED);
    order(context);
}

TEST_MAIN(run)
