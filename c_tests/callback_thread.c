/* Broken if this fails: a callback runs on another thread than the header says. In offload mode the
 * progress thread calls it, if one thread posts and the queue is not full; else the caller does
 * where it can execute the operation itself, before the call returns, but never with
 * LLCL_FLAG_DEFER. A library relies on this for its locks, and for its thread-local data.
 * ranks: 1 2
 * cma: on off
 */
#include "am.h"
#include <sys/prctl.h>

enum { ROUNDS = 60, ASK, ASK_BACK, ANSWER };

static __thread int in_call;
static pthread_t poster;

/* What is known of a callback before it runs. */
struct expected {
    int at_once; /* the caller executes the operation */
    int deferred;
    uint64_t fired;
};

static int is_progress_thread(void)
{
    char name[16] = "";
    CHECK(prctl(PR_GET_NAME, name) == 0);
    return strcmp(name, "llcl-progress") == 0;
}

static void fire(void *data, llcl_status_t status)
{
    struct expected *expected = data;
    CHECK_OK(status);
    if (test_mode_is("offload"))
        CHECK(is_progress_thread());
    else if (expected->at_once)
        CHECK(pthread_equal(pthread_self(), poster) && in_call);
    if (expected->deferred)
        CHECK(!in_call);
    word_add(&expected->fired, 1);
}

/* The flag is this thread's: callbacks on other threads do not see it. */
#define CALL(expr)                                     \
    do {                                               \
        llcl_status_t status_;                         \
        do {                                           \
            in_call = 1;                               \
            status_ = (expr);                          \
            in_call = 0;                               \
        } while (status_ > 0 && sched_yield() == 0);   \
        CHECK_OK(status_);                             \
    } while (0)

/* Ends by turns while this thread waits in the library and while it does not. */
static void ends(llcl_context_t *context, struct expected *expected, uint64_t times, int round)
{
    if (round % 2)
        CHECK_OK(llcl_wait_word(context, &expected->fired, times, TEST_PATIENCE_NS));
    else
        AWAIT(&expected->fired, times);
}

static void on_memory(llcl_context_t *context, int kind)
{
    struct shared target, mine;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    int round;
    share(context, kind, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    for (round = 0; round < ROUNDS; round++) {
        struct expected expected = {0, 0, 0};
        llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
        llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
        llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
        llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
        expected.deferred = round / 2 % 2;
        expected.at_once = !expected.deferred && (kind == ALLOCATED || peer == llcl_rank(context));
        write.peer = read.peer = add.peer = box.peer = peer;
        write.flags = read.flags = add.flags = box.flags = expected.deferred ? LLCL_FLAG_DEFER : 0;
        write.source = read.destination = box.local = llcl_region_local(mine.region, 0);
        write.destination = read.source = add.target = box.remote = target.remote[peer];
        write.size = read.size = 512;
        box.size = 8;
        box.dimensions = 1;
        box.extents[0] = 4;
        box.local_strides[0] = box.remote_strides[0] = 64;
        write.on_local = write.on_complete = llcl_callback(fire, &expected);
        read.on_complete = add.on_complete = box.on_complete = write.on_complete;
        CALL(llcl_try_write_async(context, &write));
        ends(context, &expected, 2, round);
        CALL(llcl_try_read_async(context, &read));
        ends(context, &expected, 3, round);
        CALL(llcl_try_fetch_add_async(context, &add));
        ends(context, &expected, 4, round);
        CALL(llcl_try_write_strided_async(context, &box));
        ends(context, &expected, 5, round);
    }
    region_drop(&mine);
    share_end(context, &target);
}

static void ask(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK_OK(llcl_am_reply(message, NULL, 0));
}

static void ask_back(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, ANSWER, NULL, 0);
    (void)data;
    CHECK_OK(llcl_am_respond(message, &am));
}

static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
}

static void messages(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    int round;
    am_register(context, ASK, ask, NULL);
    am_register(context, ASK_BACK, ask_back, NULL);
    am_register(context, ANSWER, answer, NULL);
    fence(context);
    for (round = 0; round < ROUNDS; round++) {
        struct expected local = {0, 0, 0}, complete = {0, 0, 0};
        llcl_am_params_t am = am_to(peer, round / 4 % 2 ? ASK_BACK : ASK, NULL, 0);
        local.deferred = complete.deferred = round / 2 % 2;
        local.at_once = !local.deferred;
        am.flags = local.deferred ? LLCL_FLAG_DEFER : 0;
        am.payload = "bytes";
        am.payload_size = 5;
        am.on_local = llcl_callback(fire, &local);
        am.on_complete = llcl_callback(fire, &complete);
        CALL(llcl_try_am_async(context, &am));
        ends(context, &local, 1, round);
        ends(context, &complete, 1, round);
    }
    fence(context);
}

static void run(llcl_context_t *context)
{
    poster = pthread_self();
    on_memory(context, ALLOCATED);
    on_memory(context, REGISTERED);
    messages(context);
}

TEST_MAIN(run)
