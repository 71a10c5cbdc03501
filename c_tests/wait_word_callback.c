/* Broken if this fails: a thread that waits for a word which the callback of a collective sets is
 * told LLCL_ERR_PEER_DEAD because the other rank has left, although the callback has not returned.
 * ranks: 2
 * modes: auto offload
 * threads: yes
 */
#include "coll.h"

/* Takes its time until it sets the word. */
static void fire_late(void *data, llcl_status_t status)
{
    (void)status;
    sleep_ms(20);
    word_set(data, 1);
}

static void has_fired(llcl_context_t *context, const uint64_t *word)
{
    llcl_status_t status = llcl_wait_word(context, word, 1, TEST_PATIENCE_NS);
    if (status != LLCL_ERR_PEER_DEAD)
        CHECK_OK(status);
    CHECK_EQUAL(word_get(word), 1);
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    uint64_t planned = 0, called = 0;
    llcl_coll_t *plan;
    params.team = coll_world(context);
    params.on_complete = llcl_callback(fire_late, &planned);
    CHECK_OK(llcl_barrier_init(&params, &plan));
    params.on_complete = llcl_callback(fire_late, &called);
    CHECK_OK(llcl_barrier_async(&params)); /* the team keeps its plan */
    CHECK_OK(llcl_wait_word(context, &called, 1, TEST_PATIENCE_NS));
    fence(context);
    called = 0;
    if (llcl_rank(context) == 0) {
        CHECK_OK(llcl_coll_start(plan));
        CHECK_OK(llcl_barrier_async(&params));
        fence(context);
        has_fired(context, &planned);
        has_fired(context, &called);
    } else {
        fence(context);
    }
    (void)llcl_finalize_within(context, 2000000); /* the rounds have failed, or cannot end */
    test_finalized = 1;
}

TEST_MAIN(run)
