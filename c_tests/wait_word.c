/* Broken if this fails: llcl_wait_word does not return at once for what is true already, does not
 * keep its time-out, compares wrongly, or does not see a word that a completion or a peer changed.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

static void timeouts(llcl_context_t *context)
{
    uint64_t word = 5;
    int64_t begin, took;
    CHECK_OK(llcl_wait_word(context, &word, 5, 0));
    CHECK_OK(llcl_wait_word(context, &word, 0, 0));
    CHECK_OK(llcl_wait_word(context, &word, 4, -1));
    CHECK_STATUS(llcl_wait_word(context, &word, 6, 0), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_word(context, &word, UINT64_MAX, 0), LLCL_ERR_TIMEOUT);
    word = UINT64_MAX; /* unsigned: the largest there is */
    CHECK_OK(llcl_wait_word(context, &word, UINT64_MAX, -1));
    CHECK_OK(llcl_wait_word(context, &word, 1, 0));
    word = 0;
    begin = now_ns();
    CHECK_STATUS(llcl_wait_word(context, &word, 1, 1), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_word(context, &word, 1, 30000000), LLCL_ERR_TIMEOUT);
    took = now_ns() - begin;
    CHECK(took >= 30000000);
    CHECK(took < TEST_PATIENCE_NS);
}

/* A word on the stack, raised by completions; a word of a region, raised by a peer. */
static void raised(llcl_context_t *context, int kind)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    struct shared target;
    uint64_t done = 0, round;
    share(context, kind, 64, &target);
    for (round = 1; round <= 500; round++) {
        llcl_fetch_add_params_t add = {0};
        add.peer = peer;
        add.flags = round % 2 ? LLCL_FLAG_DEFER : 0;
        add.target = remote_at(&target, peer, 0);
        add.operand = 1;
        add.on_complete = llcl_add_on(&done);
        POST(llcl_try_fetch_add_async(context, &add));
        CHECK_OK(llcl_wait_word(context, &done, round, TEST_PATIENCE_NS));
        CHECK_OK(llcl_wait_word(context, target.words, round, TEST_PATIENCE_NS));
    }
    share_end(context, &target);
}

static void run(llcl_context_t *context)
{
    timeouts(context);
    raised(context, ALLOCATED);
    raised(context, REGISTERED);
}

TEST_MAIN(run)
