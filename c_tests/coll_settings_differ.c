/* Broken if this fails: ranks whose environment asks for different schedules (the length of
 * segments, an algorithm) make a plan of pieces that do not fit, instead of being told at every
 * rank what differs.
 * ranks: 2 3
 * modes: auto direct
 */
#include "coll.h"

static void refused(llcl_context_t *context, int operation, const char *word)
{
    struct coll_memory memory;
    struct coll_case asked = {0};
    struct coll_run run;
    coll_memory_make(context, ALLOCATED, 1 << 16, &memory);
    asked.team = coll_world(context);
    asked.operation = operation;
    asked.type = LLCL_TYPE_U8;
    asked.op = LLCL_OP_ADD;
    asked.count = 1000;
    CHECK_STATUS(coll_make(&run, &asked, &memory, &memory), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), word) != NULL);
    coll_forget(&run);
    fence(context);
    region_drop(&memory.shared);
}

static void run(llcl_context_t *context)
{
    refused(context, ALLREDUCE, "LLCL_COLL_SEGMENT");
    refused(context, BROADCAST, "algorithm");
}

int main(void)
{
    int last;
    CHECK(getenv("LLCL_RANK") && getenv("LLCL_SIZE"));
    last = atoi(getenv("LLCL_RANK")) == atoi(getenv("LLCL_SIZE")) - 1;
    coll_default("LLCL_COLL_SEGMENT", last ? "4096" : "8192");
    coll_default("LLCL_COLL_BROADCAST", last ? "auto" : "chain");
    return test_main(run, NULL);
}
