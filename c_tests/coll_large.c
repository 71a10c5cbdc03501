/* Broken if this fails: a collective of a few segments of the usual length goes wrong: a segment is
 * left out, taken twice or put at a wrong place, by some algorithm.
 * ranks: 2 3
 * engines: offload thread
 * modes: auto direct
 * cma: on off
 * timeout: 60
 */
#include "coll.h"

static const uint64_t sizes[] = {65535, 65536, 65537, 3 * 65536 + 4321};

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t ranks = llcl_size(context);
    int tried;
    coll_memory_make(context, ALLOCATED, (size_t)2 << 20, &memory);
    asked.team = coll_world(context);
    for (asked.operation = BROADCAST; asked.operation < OPERATIONS; asked.operation++) {
        const struct coll_operation *operation = &coll_operations[asked.operation];
        for (tried = -1; tried < 0 || operation->algorithms[tried]; tried++) {
            unsigned size;
            asked.algorithm = tried < 0 ? NULL : operation->algorithms[tried];
            for (size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
                llcl_status_t status;
                asked.seed++;
                asked.type = size % 2 ? LLCL_TYPE_U64 : LLCL_TYPE_I8;
                asked.op = LLCL_OP_XOR;
                asked.in_place = asked.operation != BROADCAST && asked.seed % 3 == 0;
                asked.root = operation->rooted ? (uint32_t)asked.seed % ranks : 0;
                asked.count = sizes[size] / coll_width(asked.type);
                status = coll_whole(&asked, &memory, 2);
                if (status != LLCL_ERR_UNSUPPORTED || !asked.algorithm)
                    CHECK_OK(status);
            }
        }
    }
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN(run)
