/* Broken if this fails: some collective, by some algorithm, at some root or size, in place or not,
 * brings a wrong result, changes its input or a byte beside its buffers, or brings the last round's
 * result.
 * ranks: 1 2 3 5 8
 * engines: offload thread
 * threads: 3
 * timeout: 90
 */
#include "coll.h"

#define SEGMENT 1024u

static const uint64_t sizes[] = {0, 1, 7, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT + 5};
static const uint32_t types[] = {LLCL_TYPE_U8, LLCL_TYPE_U64, LLCL_TYPE_I16, LLCL_TYPE_F32};
#define SIZES (sizeof sizes / sizeof sizes[0])

/* Every root for the small sizes; some, and all in the end, for the others. */
static int root_is_tried(uint32_t root, size_t size, uint32_t ranks)
{
    return root == 0 || sizes[size] == 7 || root % SIZES == size % ranks || ranks <= 3;
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t ranks = llcl_size(context), roots;
    size_t size;
    int tried, posted = coll_is_posted(context);
    coll_memory_make(context, ALLOCATED, 4096 * 8 * (size_t)COLL_MOST, &memory);
    asked.team = coll_world(context);
    for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++) {
        const struct coll_operation *operation = &coll_operations[asked.operation];
        for (tried = -1; tried < 0 || operation->algorithms[tried]; tried++) {
            unsigned ran = 0;
            asked.algorithm = tried < 0 ? NULL : operation->algorithms[tried];
            roots = operation->rooted ? ranks : 1;
            for (size = 0; size < SIZES; size++)
                for (asked.root = 0; asked.root < roots; asked.root++)
                    for (asked.in_place = 0; asked.in_place < 2; asked.in_place++) {
                        llcl_status_t status;
                        if (!root_is_tried(asked.root, size, ranks) ||
                            (asked.in_place && asked.operation <= BROADCAST))
                            continue;
                        asked.seed++;
                        asked.type = types[asked.seed % 4];
                        asked.op = LLCL_OP_ADD;
                        asked.count = sizes[size] / coll_width(asked.type);
                        if (sizes[size] <= 7)
                            asked.count = sizes[size];
                        status = coll_whole(&asked, &memory, 3);
                        if (status != LLCL_ERR_UNSUPPORTED || !asked.algorithm)
                            CHECK_OK(status);
                        ran += status == LLCL_OK;
                    }
            /* Recursive doubling of an allgather is for powers of two. */
            CHECK(ran > 0 || (posted && strcmp(asked.algorithm, "direct") == 0) || (asked.operation == ALLGATHER && (ranks & (ranks - 1)) != 0));
        }
    }
    fence(context);
    region_drop(&memory.shared);
}

int main(void)
{
    coll_default("LLCL_COLL_SEGMENT", "1024");
    return test_main(run, NULL);
}
