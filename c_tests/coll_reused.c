/* Broken if this fails: a collective uses a table of counts or offsets, the name of an algorithm
 * or the parameters after llcl_X_async or the _init function has returned; or a buffer after the
 * completion of the round has fired, or after llcl_coll_wait or the blocking form has returned,
 * when other ranks may still be in the round. All are overwritten at once.
 * ranks: 1 2 3 5
 * engines: offload thread
 * threads: yes
 * timeout: 60
 */
#include "coll.h"

/* What a call reads: copies, so that they can be overwritten. */
struct given {
    llcl_coll_params_t params;
    char name[32];
    uint64_t tables[4][COLL_MOST];
};

static void give(struct given *given, const struct coll_run *run)
{
    llcl_coll_params_t *params = &given->params;
    const uint64_t **tables[4];
    int i;
    memset(given, 0, sizeof *given);
    *params = run->params;
    tables[0] = &params->send_counts;
    tables[1] = &params->send_offsets;
    tables[2] = &params->receive_counts;
    tables[3] = &params->receive_offsets;
    for (i = 0; i < 4; i++) {
        if (!*tables[i])
            continue;
        memcpy(given->tables[i], *tables[i], sizeof given->tables[i]);
        *tables[i] = given->tables[i];
    }
    if (params->algorithm) {
        strcpy(given->name, params->algorithm);
        params->algorithm = given->name;
    }
}

static void overwrite_given(struct given *given)
{
    memset(given, 0xee, sizeof *given);
}

static void check_and_overwrite(struct coll_run *run)
{
    coll_verify(run);
    memset(run->send.bytes, 0xee, run->send.size + 2 * COLL_GUARD);
    memset(run->receive.bytes, 0xee, run->receive.size + 2 * COLL_GUARD);
}

struct call {
    struct coll_run *run;
    uint64_t ended;
};

static void end(void *data, llcl_status_t status)
{
    struct call *call = data;
    CHECK_OK(status);
    check_and_overwrite(call->run);
    word_add(&call->ended, 1);
}

static void asynchronous(struct coll_run *run)
{
    struct given given;
    struct call call = {NULL, 0};
    llcl_status_t status;
    call.run = run;
    give(&given, run);
    given.params.on_complete = llcl_callback(end, &call);
    coll_fill(run);
    do
        status = coll_begin(run->asked.operation, run->asked.varied, &given.params);
    while (status == LLCL_RETRY_BUSY && sched_yield() == 0);
    overwrite_given(&given);
    CHECK_OK(status);
    AWAIT(&call.ended, 1);
}

static void blocking(struct coll_run *run)
{
    struct given given;
    give(&given, run);
    coll_fill(run);
    CHECK_OK(coll_now(run->asked.operation, run->asked.varied, &given.params));
    overwrite_given(&given);
    check_and_overwrite(run);
}

static void planned(struct coll_run *run)
{
    struct given given;
    int round;
    give(&given, run);
    CHECK_OK(coll_init(run->asked.operation, run->asked.varied, &given.params, &run->plan));
    overwrite_given(&given);
    for (round = 0; round < 3; round++) {
        coll_fill(run);
        CHECK_OK(llcl_coll_start(run->plan));
        CHECK_OK(llcl_coll_wait(run->plan, TEST_PATIENCE_NS));
        check_and_overwrite(run);
    }
    CHECK_OK(llcl_coll_free(run->plan));
    run->plan = NULL;
}

static void all_ways(struct coll_case *asked, struct coll_memory *memory)
{
    struct coll_run run;
    int turn;
    asked->seed++;
    coll_prepare(&run, asked, memory, memory);
    for (turn = 0; turn < 2; turn++) {
        asynchronous(&run);
        blocking(&run);
    }
    planned(&run);
    coll_forget(&run);
    memory->used = 0;
}

static void run(llcl_context_t *context)
{
    static const uint64_t counts[] = {7, 20000};
    struct coll_memory memories[MEMORY_KINDS];
    struct coll_case asked;
    int kind, posted = coll_is_posted(context);
    size_t c;
    memset(&asked, 0, sizeof asked);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        coll_memory_make(context, kind, 4 << 20, &memories[kind]);
        for (asked.operation = BROADCAST; asked.operation < OPERATIONS; asked.operation++)
            for (asked.varied = 0; asked.varied <= coll_operations[asked.operation].has_varied; asked.varied++)
                for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                    asked.count = counts[c];
                    asked.root = coll_operations[asked.operation].rooted ? llcl_size(context) - 1 : 0;
                    asked.algorithm = NULL;
                    all_ways(&asked, &memories[kind]);
                    /* This one reads the memory of other ranks. */
                    asked.algorithm = "direct";
                    if (!posted)
                        all_ways(&asked, &memories[kind]);
                }
    }
    fence(context);
    region_drop(&memories[ALLOCATED].shared);
    region_drop(&memories[REGISTERED].shared);
}

TEST_MAIN(run)
