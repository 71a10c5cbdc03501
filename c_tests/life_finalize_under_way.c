/* Broken if this fails: llcl_finalize with operations under way loses a completion, fires one
 * twice, fires one after it returned, or never returns because callbacks go on posting.
 * ranks: 1 2 3
 * cma: on off
 * threads: 2
 */
#include "shared.h"

#define OPERATIONS 500

struct mine {
    llcl_context_t *context;
    struct shared target;
    uint32_t peer;
    uint32_t fired[OPERATIONS];
    struct tally chain;
    uint64_t chain_accepted;
};


static void fire(void *data, llcl_status_t status)
{
    CHECK(status == LLCL_OK || status == LLCL_ERR_CANCELED || status == LLCL_ERR_PEER_DEAD);
    __atomic_fetch_add((uint32_t *)data, 1, __ATOMIC_ACQ_REL);
}

/* Posts itself again for ever, until the library says that the context is going. */
static void again(void *data, llcl_status_t status);

static llcl_status_t post_chain(struct mine *mine)
{
    llcl_write_value_params_t value = {0};
    value.peer = mine->peer;
    value.flags = LLCL_FLAG_DEFER;
    value.destination = remote_at(&mine->target, mine->peer, 0);
    value.value = 1;
    value.size = 8;
    value.on_complete = llcl_callback(again, mine);
    return llcl_try_write_value_async(mine->context, &value);
}

static void again(void *data, llcl_status_t status)
{
    struct mine *mine = data;
    word_add(&mine->chain.fired, 1);
    if (status != LLCL_OK)
        return;
    word_add(&mine->chain_accepted, 1);
    status = post_chain(mine);
    if (status != LLCL_OK) {
        CHECK(status > 0 || status == LLCL_ERR_STATE || status == LLCL_ERR_PEER_DEAD ||
              status == LLCL_ERR_CANCELED || status == LLCL_ERR_KEY);
        __atomic_fetch_sub(&mine->chain_accepted, 1, __ATOMIC_ACQ_REL);
    }
}

static void run(llcl_context_t *context)
{
    struct mine *mine = calloc(1, sizeof *mine);
    uint64_t fired;
    uint32_t i;
    CHECK(mine != NULL);
    mine->context = context;
    mine->peer = (llcl_rank(context) + 1) % llcl_size(context);
    share(context, REGISTERED, 4096, &mine->target);
    for (i = 0; i < OPERATIONS; i++) {
        llcl_write_value_params_t value = {0};
        value.peer = mine->peer;
        value.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
        value.destination = remote_at(&mine->target, mine->peer, 8 * (i % 500 + 1));
        value.value = i;
        value.size = 8;
        value.on_complete = llcl_callback(fire, &mine->fired[i]);
        POST(llcl_try_write_value_async(context, &value));
    }
    word_add(&mine->chain_accepted, 1);
    POST(post_chain(mine));
    CHECK_OK(test_finalize(context));
    for (i = 0; i < OPERATIONS; i++)
        CHECK_EQUAL(mine->fired[i], 1);
    fired = word_get(&mine->chain.fired);
    CHECK_EQUAL(fired, word_get(&mine->chain_accepted));
    sleep_ms(20);
    CHECK_EQUAL(word_get(&mine->chain.fired), fired);
    free(mine->target.bytes);
    free(mine->target.remote);
    free(mine);
}

TEST_MAIN(run)
