/* Broken if this fails: a plan of which several rounds may be under way cannot be freed after a
 * round has failed, since a wait reports the same round again; or its next round, on other memory
 * of the plan, is accepted.
 * ranks: 2 3
 * engines: offload thread
 * modes: auto
 * threads: yes
 */
#include "coll.h"

#define DEPTH 3u
#define BYTES 64u

static void tell(llcl_context_t *context, const struct shared *flags, uint64_t turn)
{
    uint32_t rank;
    for (rank = 0; rank < llcl_size(context); rank++) {
        llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
        write.peer = rank;
        write.size = 8;
        write.destination = flags->remote[rank];
        write.value = turn;
        CHECK_OK(llcl_write_value(context, &write));
    }
}

/* Rank 1 starts two rounds and frees the buffers of the first one. Then the others start. */
static void fails(llcl_context_t *context, const struct shared *flags, uint64_t turn, uint64_t *word)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    struct shared memory[DEPTH];
    llcl_coll_t *plan = NULL;
    llcl_local_t send[DEPTH], receive[DEPTH];
    llcl_status_t status;
    uint32_t at, started = 0, culprit = llcl_rank(context) == 1;
    for (at = 0; at < DEPTH; at++) {
        region_make(context, ALLOCATED, 2 * BYTES, &memory[at]);
        send[at] = llcl_region_local(memory[at].region, 0);
        receive[at] = llcl_region_local(memory[at].region, BYTES);
    }
    params.team = coll_world(context);
    params.send = send[0];
    params.receive = receive[0];
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.count = BYTES / 8;
    params.depth = DEPTH;
    params.flags = LLCL_COLL_REBIND;
    if (word)
        params.on_complete = llcl_add_on(word);
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    for (at = 0; at < DEPTH; at++)
        CHECK_OK(llcl_coll_start_with(plan, send[at], receive[at]));
    for (at = 0; at < DEPTH; at++)
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
    fence(context);
    if (!culprit)
        AWAIT(flags->words, turn);
    /* The others may know of the failure before they start. */
    for (at = 0; at < 2; at++)
        started += llcl_coll_start_with(plan, send[at], receive[at]) == LLCL_OK;
    if (culprit) {
        CHECK_EQUAL(started, 2);
        region_drop(&memory[0]);
        tell(context, flags, turn);
    }
    for (at = 0; at < started; at++) {
        status = llcl_coll_wait(plan, TEST_PATIENCE_NS);
        CHECK(status == LLCL_ERR_KEY || (status == LLCL_OK && (!culprit || at > 0)));
    }
    /* A rank whose rounds ended well learns of the failure by the next one. */
    status = llcl_coll_start_with(plan, send[2], receive[2]);
    if (status == LLCL_OK && !culprit)
        status = llcl_coll_wait(plan, TEST_PATIENCE_NS);
    CHECK_STATUS(status, LLCL_ERR_KEY);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_KEY);
    CHECK_OK(llcl_coll_free(plan));
    fence(context);
    for (at = culprit; at < DEPTH; at++)
        region_drop(&memory[at]);
}

static void run(llcl_context_t *context)
{
    struct shared flags;
    uint64_t word = 0;
    share(context, ALLOCATED, 64, &flags);
    fails(context, &flags, 1, NULL);
    fails(context, &flags, 2, &word);
    share_end(context, &flags);
}

TEST_MAIN(run)
