/* Broken if this fails: a gather, scatter, allgather, alltoall or reduce-scatter with a length for
 * each block, some of them empty, in any order and with gaps, puts something at a wrong place, or
 * writes into a gap.
 * ranks: 1 2 3 5 8
 * engines: offload thread
 * modes: auto direct
 * threads: 3
 */
#include "coll.h"

#define LONGEST 700u /* elements */
#define SEEDS 8

static const uint32_t types[] = {LLCL_TYPE_I8, LLCL_TYPE_U16, LLCL_TYPE_F64, LLCL_TYPE_I32};

/* How many of the tries the algorithm took. */
static unsigned try_all(struct coll_case *asked, struct coll_memory *memory, uint32_t ranks)
{
    unsigned ran = 0, seed;
    for (asked->in_place = 0; asked->in_place < 2; asked->in_place++)
        for (seed = 0; seed < SEEDS; seed++) {
            llcl_status_t status;
            asked->seed = 1000 * (unsigned)asked->operation + seed;
            asked->root = coll_operations[asked->operation].rooted ? seed % ranks : 0;
            asked->type = types[seed % 4];
            asked->op = LLCL_OP_ADD;
            asked->count = seed == 7 ? 0 : seed == 6 ? 1 : LONGEST;
            status = coll_whole(asked, memory, 2);
            if (status != LLCL_ERR_UNSUPPORTED || !asked->algorithm)
                CHECK_OK(status);
            ran += status == LLCL_OK;
        }
    return ran;
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t ranks = llcl_size(context);
    int tried;
    coll_memory_make(context, ALLOCATED, 2 * 8 * LONGEST * (size_t)COLL_MOST, &memory);
    asked.team = coll_world(context);
    asked.varied = 1;
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        const struct coll_operation *operation = &coll_operations[asked.operation];
        unsigned fitting = 0;
        if (!operation->has_varied)
            continue;
        asked.algorithm = NULL;
        CHECK_EQUAL(try_all(&asked, &memory, ranks), 2 * SEEDS);
        for (tried = 0; operation->algorithms[tried]; tried++) {
            asked.algorithm = operation->algorithms[tried];
            fitting += try_all(&asked, &memory, ranks) > 0;
        }
        CHECK(fitting > 0);
    }
    fence(context);
    region_drop(&memory.shared);
}

int main(void)
{
    coll_default("LLCL_COLL_SEGMENT", "1024");
    return test_main(run, NULL);
}
