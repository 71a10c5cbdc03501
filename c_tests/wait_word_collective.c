/* Broken if this fails: a thread that waits for the word of a collective's completion is told
 * LLCL_ERR_PEER_DEAD because the other ranks have left, although the completion has not fired. The
 * word, perhaps on a stack, would be changed after the wait.
 * ranks: 2 3
 * modes: auto offload
 * threads: yes
 */
#include "coll.h"

/* The other ranks have left, or do not come to their end. */
static void leaves(llcl_context_t *context)
{
    llcl_status_t status = llcl_finalize_within(context, 2000000);
    if (status != LLCL_ERR_TIMEOUT)
        CHECK_OK(status);
    test_finalized = 1;
}

static void has_fired(llcl_context_t *context, uint64_t *word, llcl_status_t status)
{
    if (status == LLCL_OK)
        status = llcl_wait_word(context, word, 1, TEST_PATIENCE_NS);
    else
        *word = 1; /* refused: nothing fires */
    if (status != LLCL_OK && status != LLCL_ERR_PEER_DEAD)
        CHECK_OK(status);
    CHECK(word_get(word) != 0);
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    uint32_t last = llcl_size(context) - 1, round;
    uint64_t word = 0;
    llcl_coll_t *plan;
    params.team = coll_world(context);
    params.on_complete = llcl_store_on(&word);
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_barrier(context));
    if (llcl_rank(context) == last) {
        leaves(context);
        return;
    }
    /* A round that fails when the news comes, or is refused. */
    has_fired(context, &word, llcl_coll_start(plan));
    while (llcl_peer_alive(context, last) == LLCL_OK)
        sched_yield();
    if (last > 1 && llcl_rank(context) > 0) {
        leaves(context);
        return;
    }
    for (round = 1; round < last; round++)
        while (llcl_peer_alive(context, round) == LLCL_OK)
            sched_yield();
    /* Calls without a plan: the thread of the team finds out that nobody comes. */
    for (round = 0; round < 20; round++) {
        word = 0;
        has_fired(context, &word, llcl_barrier_async(&params));
    }
    leaves(context);
}

TEST_MAIN(run)
