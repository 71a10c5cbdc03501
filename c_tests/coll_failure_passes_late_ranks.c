/* Broken if this fails: a rank that learns between two rounds that its plan has failed does not
 * inform the ranks that only it knows, which then wait for ever. One rank has freed its input. A
 * rank that sees the error informs the late rank, which starts only then.
 * ranks: 4 66
 * modes: auto
 * threads: 4
 * timeout: 60
 */
#include "coll.h"

#define COUNT 64u
#define BYTES (COUNT * 8)

struct roles {
    uint32_t culprit, teller, late;
};

static void tell(llcl_context_t *context, const struct shared *flags, uint32_t rank)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    write.peer = rank;
    write.size = 8;
    write.destination = flags->remote[rank];
    write.value = 1;
    CHECK_OK(llcl_write_value(context, &write));
}

static void fails_everywhere(llcl_context_t *context, int operation, const char *algorithm,
                             struct roles roles)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    struct shared input, output, flags;
    llcl_coll_t *plan = NULL;
    llcl_status_t status;
    uint32_t me = llcl_rank(context);
    share(context, ALLOCATED, 64, &flags);
    region_make(context, ALLOCATED, BYTES, &input);
    region_make(context, ALLOCATED, BYTES, &output);
    params.team = coll_world(context);
    params.send = llcl_region_local(input.region, 0);
    params.receive = llcl_region_local(output.region, 0);
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    params.count = COUNT;
    params.root = 2;
    params.algorithm = algorithm;
    CHECK_OK(coll_init(operation, 0, &params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, 3 * TEST_PATIENCE_NS));
    fence(context);
    if (me == roles.culprit)
        region_drop(&input);
    fence(context);
    if (me == roles.late)
        AWAIT(flags.words, 1);
    status = llcl_coll_start(plan);
    if (status == LLCL_OK)
        status = llcl_coll_wait(plan, TEST_PATIENCE_NS);
    /* A rank that only sends may end this round well, and learns of the failure later. */
    if (operation != REDUCE || me == roles.culprit || me == params.root)
        CHECK_STATUS(status, LLCL_ERR_KEY);
    if (me == roles.teller)
        tell(context, &flags, roles.late);
    fence(context);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_KEY);
    CHECK_OK(llcl_coll_free(plan));
    fence(context);
    if (me != roles.culprit)
        region_drop(&input);
    region_drop(&output);
    share_end(context, &flags);
}

static void run(llcl_context_t *context)
{
    struct roles in_line = {0, 1, 2}, below_root = {1, 1, 0};
    if (llcl_size(context) > 64)
        fails_everywhere(context, SCAN, "direct", in_line);
    else
        fails_everywhere(context, REDUCE, NULL, below_root);
}

TEST_MAIN(run)
