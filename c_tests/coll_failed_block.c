/* Broken if this fails: memory of a plan whose round has failed is used again although a rank of
 * another node may still have a write to it under way, or it is not used again where ranks share
 * memory. LLCL_COLL_MEMORY has room for one of the plans, so the second one tells.
 * ranks: 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define BYTES ((size_t)5 << 19) /* of a vector, and of the plan's scratch memory */
#define LIMIT_NS 20000000000

static void make(llcl_context_t *context, struct shared memory[2], llcl_coll_params_t *params)
{
    int side;
    for (side = 0; side < 2; side++)
        share(context, ALLOCATED, BYTES, &memory[side]);
    params->team = coll_world(context);
    params->send = llcl_region_local(memory[0].region, 0);
    params->receive = llcl_region_local(memory[1].region, 0);
    params->type = LLCL_TYPE_U64;
    params->count = BYTES / 8;
    params->op = LLCL_OP_ADD;
    params->algorithm = "ring";
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    struct shared first[2], second[2];
    llcl_coll_t *plan = NULL;
    make(context, first, &params);
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, LIMIT_NS));
    /* The first step of each rank finds no input. */
    fence(context);
    region_drop(&first[0]);
    fence(context);
    (void)llcl_coll_start(plan);
    CHECK(llcl_coll_wait(plan, LIMIT_NS) != LLCL_OK);
    CHECK_OK(llcl_coll_free(plan));
    fence(context);
    make(context, second, &params);
    CHECK_STATUS(llcl_allreduce_init(&params, &plan), coll_is_posted(context) ? LLCL_ERR_NO_MEMORY : LLCL_OK);
    if (!coll_is_posted(context)) {
        CHECK_OK(llcl_coll_start(plan));
        CHECK_OK(llcl_coll_wait(plan, LIMIT_NS));
        CHECK_OK(llcl_coll_free(plan));
    }
    fence(context);
    region_drop(&first[1]);
    region_drop(&second[0]);
    region_drop(&second[1]);
}

int main(void)
{
    coll_default("LLCL_COLL_MEMORY", "4");
    return test_main(run, NULL);
}
