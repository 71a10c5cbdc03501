/* Broken if this fails: callbacks that post the next request recurse: a chain of a million needs a
 * stack that grows with it, or stops in the middle.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 * timeout: 60
 */
#include "shared.h"

struct chain {
    llcl_context_t *context;
    llcl_fetch_add_params_t add;
    uint64_t left, done;
    uintptr_t lowest, highest;
    pthread_t thread;
    uint64_t deepest;
};

static void next(void *data, llcl_status_t status);

/* A callback must not wait; a refused link is posted again by the main thread. */
static void link_on(struct chain *chain)
{
    llcl_status_t status;
    chain->add.on_complete = llcl_callback(next, chain);
    status = llcl_try_fetch_add_async(chain->context, &chain->add);
    if (status > 0) {
        word_set(&chain->done, 2);
        return;
    }
    CHECK_OK(status);
}

static void next(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    uintptr_t address = (uintptr_t)__builtin_frame_address(0);
    CHECK_OK(status);
    /* How far the stack goes within one thread; links may run on different ones. */
    if (!pthread_equal(chain->thread, pthread_self())) {
        chain->thread = pthread_self();
        chain->lowest = chain->highest = address;
    }
    if (address < chain->lowest)
        chain->lowest = address;
    if (address > chain->highest)
        chain->highest = address;
    if (chain->highest - chain->lowest > chain->deepest)
        chain->deepest = chain->highest - chain->lowest;
    if (--chain->left == 0)
        word_set(&chain->done, 1);
    else
        link_on(chain);
}

static void chain_of(llcl_context_t *context, int kind, uint32_t flags, uint64_t length)
{
    struct shared target;
    struct chain chain;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    memset(&chain, 0, sizeof chain);
    share(context, kind, 64, &target);
    chain.context = context;
    chain.left = length;
    chain.add.peer = peer;
    chain.add.flags = flags;
    chain.add.target = remote_at(&target, peer, 0);
    chain.add.operand = 1;
    link_on(&chain);
    for (;;) {
        int64_t end = now_ns() + 3 * TEST_PATIENCE_NS;
        while (word_get(&chain.done) == 0) {
            usleep(100);
            CHECK(now_ns() < end);
        }
        if (word_get(&chain.done) == 1)
            break;
        word_set(&chain.done, 0);
        link_on(&chain);
    }
    CHECK(chain.deepest < 65536);
    fence(context);
    CHECK_EQUAL(word_get(target.words), length);
    share_end(context, &target);
}

static void run(llcl_context_t *context)
{
    /* Over a network each link takes two trips and two naps. */
    int near = is_near(context, (llcl_rank(context) + 1) % llcl_size(context));
    uint64_t million = !near ? 1000 : test_in_threads() ? 50000 : 1000000;
    chain_of(context, ALLOCATED, 0, million);
    chain_of(context, ALLOCATED, LLCL_FLAG_DEFER, million / 10);
    /* Where only the owner can do it and its program sleeps, a link takes as long as two naps. */
    chain_of(context, REGISTERED, 0, near ? million / 500 : 50);
}

TEST_MAIN(run)
