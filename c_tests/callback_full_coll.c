/* Broken if this fails: a callback that ends the round of a plan, by llcl_coll_start,
 * llcl_coll_test or an _async form, while its thread holds 64 callbacks back, runs the round's
 * callback inside itself. A plan that its callback starts again then needs a stack that grows with
 * each round.
 * ranks: 1 2
 * engines: offload thread
 * threads: yes
 */
#include "am.h"

#define HELD 64
#define ROUNDS 200u
#define LARGE ((size_t)64 << 10) /* bytes that llcl_coll_start leaves to others */
#define TESTS 300

enum chain { BY_START, BY_TEST, BY_ASYNC, CHAINS };

struct full {
    llcl_context_t *context;
    llcl_coll_t *held[HELD], *again;
    llcl_coll_params_t params; /* of BY_ASYNC */
    enum chain chain;
    struct tally held_back;
    uint64_t rounds;
    uint64_t left; /* calls of fill() and again() that have ended: behind the last the plan is free */
};

/* Whether this thread is inside a callback or handler of this test. */
static __thread int inside;

static void hold(void *data, llcl_status_t status)
{
    CHECK(!inside);
    tally_fire(data, status);
}

static void start_again(struct full *full)
{
    int tests;
    if (full->chain == BY_ASYNC) {
        CHECK_OK(llcl_allreduce_async(&full->params));
        return;
    }
    CHECK_OK(llcl_coll_start(full->again));
    for (tests = 0; full->chain == BY_TEST && tests < TESTS; tests++)
        if (llcl_coll_test(full->again) != LLCL_RETRY_BUSY)
            return;
}

static void again(void *data, llcl_status_t status)
{
    struct full *full = data;
    CHECK_OK(status);
    CHECK(!inside);
    inside = 1;
    if (word_add(&full->rounds, 1) + 1 < ROUNDS)
        start_again(full);
    inside = 0;
    word_add(&full->left, 1);
}

static void fill(struct full *full)
{
    int i;
    CHECK(!inside);
    inside = 1;
    for (i = 0; i < HELD; i++)
        CHECK_OK(llcl_coll_start(full->held[i]));
    start_again(full);
    inside = 0;
    word_add(&full->left, 1);
}

static void in_operation(void *data, llcl_status_t status)
{
    CHECK_OK(status);
    fill(data);
}

static void in_handler(llcl_am_t *message, void *data)
{
    (void)message;
    fill(data);
}

static void chain(llcl_context_t *context, struct full *full, enum chain chain, int by_message)
{
    llcl_am_params_t am = am_to(llcl_rank(context), 1, NULL, 0);
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    struct shared target;
    region_make(context, ALLOCATED, 64, &target);
    full->chain = chain;
    full->rounds = full->left = full->held_back.fired = 0;
    full->params.count = chain == BY_START ? 1 : LARGE;
    if (chain != BY_ASYNC)
        CHECK_OK(llcl_allreduce_init(&full->params, &full->again));
    if (by_message) {
        POST(llcl_try_am_async(context, &am));
    } else {
        add.peer = llcl_rank(context);
        add.target = llcl_region_remote(target.region, 0);
        add.on_complete = llcl_callback(in_operation, full);
        POST(llcl_try_fetch_add_async(context, &add));
    }
    AM_AWAIT(context, &full->left, ROUNDS + 1);
    AM_AWAIT(context, &full->held_back.fired, HELD);
    CHECK_EQUAL(full->rounds, ROUNDS);
    CHECK_EQUAL(full->held_back.failed, 0);
    region_drop(&target);
    if (chain != BY_ASYNC)
        CHECK_OK(llcl_coll_free(full->again));
}

static void run(llcl_context_t *context)
{
    struct full *full = am_new(sizeof *full);
    unsigned char *bytes = am_new(2 * LARGE);
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    int i;
    full->context = context;
    CHECK_OK(llcl_team_world(context, &params.team));
    params.on_complete = llcl_callback(hold, &full->held_back);
    for (i = 0; i < HELD; i++)
        CHECK_OK(llcl_barrier_init(&params, &full->held[i]));
    params.send = llcl_local_address(bytes);
    params.receive = llcl_local_address(bytes + LARGE);
    params.type = LLCL_TYPE_U8;
    params.op = LLCL_OP_MAX;
    params.on_complete = llcl_callback(again, full);
    full->params = params;
    am_register(context, 1, in_handler, full);
    fence(context);
    for (i = 0; i < 2 * CHAINS; i++)
        chain(context, full, (enum chain)(i / 2), i % 2);
    fence(context);
    for (i = 0; i < HELD; i++)
        CHECK_OK(llcl_coll_free(full->held[i]));
}

TEST_MAIN(run)
