/* Broken if this fails: a callback that tries to write to a region which this rank has never used
 * is refused again and again: it runs on the thread that would have to ask the owner, so it waits
 * for itself.
 *
 * An operation that only its owner can do ends by a callback. The callback writes to another region
 * of the same peer, and tries until it is accepted.
 * ranks: 2
 * cma: off
 * modes: auto offload
 * threads: yes
 */
#include "shared.h"

struct job {
    llcl_context_t *context;
    llcl_remote_t place;
    uint32_t peer;
    uint64_t accepted, ended;
};

static void write_back(void *data, llcl_status_t status)
{
    struct job *job = data;
    llcl_write_value_params_t params = LLCL_WRITE_VALUE_PARAMS_INIT;
    llcl_status_t tried;
    int64_t limit = now_ns() + TEST_PATIENCE_NS;
    CHECK_OK(status);
    params.peer = job->peer;
    params.destination = job->place;
    params.value = 77;
    params.size = 8;
    params.on_complete = llcl_store_on(&job->ended);
    while ((tried = llcl_try_write_value_async(job->context, &params)) == LLCL_RETRY_CONNECTING)
        CHECK(now_ns() < limit);
    CHECK(tried == LLCL_OK || tried == LLCL_DONE);
    word_add(&job->accepted, 1);
}

static void run(llcl_context_t *context)
{
    uint32_t peer = 1 - llcl_rank(context);
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    struct shared first, second;
    struct job job;
    uint64_t old = 0;
    share(context, REGISTERED, 4096, &first);
    share(context, REGISTERED, 4096, &second);
    memset(&job, 0, sizeof job);
    job.context = context;
    job.peer = peer;
    job.place = remote_at(&second, peer, 8);
    add.peer = peer;
    add.target = remote_at(&first, peer, 0);
    add.operand = 1;
    add.result = &old;
    add.on_complete = llcl_callback(write_back, &job);
    CHECK_OK(llcl_fetch_add_async(context, &add));
    CHECK_OK(llcl_wait_word(context, &job.accepted, 1, TEST_PATIENCE_NS));
    CHECK_OK(llcl_wait_word(context, &job.ended, 1, TEST_PATIENCE_NS));
    fence(context);
    CHECK_EQUAL(word_get(&second.words[1]), 77);
    share_end(context, &second);
    share_end(context, &first);
}

TEST_MAIN(run)
