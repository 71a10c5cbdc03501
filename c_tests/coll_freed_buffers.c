/* Broken if this fails: a round of a plan ends well although the registered memory from which its
 * input, or to which its output, is copied was freed before: the result went nowhere.
 * ranks: 1 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

enum { SMALL = 8, LARGE = 20000 };

static llcl_status_t one_round(llcl_coll_t *plan)
{
    llcl_status_t status = llcl_coll_start(plan);
    return status == LLCL_OK ? llcl_coll_wait(plan, TEST_PATIENCE_NS) : status;
}

/* Two rounds; before the second one every rank frees one of its buffers, 0 or 1. */
static void rounds(llcl_context_t *context, uint64_t count, uint32_t flags, int which, uint64_t *word)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    struct shared sides[2];
    llcl_coll_t *plan = NULL;
    llcl_status_t status;
    region_make(context, REGISTERED, count * 8, &sides[0]);
    region_make(context, REGISTERED, count * 8, &sides[1]);
    params.team = coll_world(context);
    params.send = llcl_region_local(sides[0].region, 0);
    params.receive = llcl_region_local(sides[1].region, 0);
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.count = count;
    params.flags = flags;
    if (word)
        params.on_complete = llcl_store_on(word);
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    CHECK_OK(one_round(plan));
    fence(context);
    region_drop(&sides[which]);
    if (word)
        word_set(word, 0);
    fence(context);
    status = one_round(plan);
    CHECK_STATUS(status, LLCL_ERR_KEY);
    CHECK(!word || (int64_t)word_get(word) <= 0);
    CHECK_OK(llcl_coll_free(plan));
    fence(context);
    region_drop(&sides[1 - which]);
}

static void run(llcl_context_t *context)
{
    uint64_t word = 0;
    int way;
    for (way = 0; way < 16; way++)
        rounds(context, way & 1 ? LARGE : SMALL, way & 2 ? LLCL_COLL_REBIND : 0, way >> 2 & 1,
               way & 8 ? &word : NULL);
}

TEST_MAIN(run)
