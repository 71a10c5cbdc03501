/* Broken if this fails: in a team of one rank a collective changes bytes that it must not change,
 * or its result is not the rank's own contribution: with buffers that peers map or not, in place or
 * not.
 * ranks: 1 2
 * engines: offload thread
 * threads: yes
 * timeout: 60
 */
#include "coll.h"

static void run(llcl_context_t *context)
{
    struct coll_memory memories[MEMORY_KINDS];
    struct coll_case asked = {0};
    int kind;
    asked.type = LLCL_TYPE_U64;
    asked.op = LLCL_OP_ADD;
    CHECK_OK(llcl_team_split(coll_world(context), llcl_rank(context), 0, &asked.team));
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        coll_memory_make(context, kind, (size_t)1 << 17, &memories[kind]);
        for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++)
            for (asked.varied = 0; asked.varied <= coll_operations[asked.operation].has_varied;
                 asked.varied++)
                for (asked.in_place = 0; asked.in_place <= (asked.operation > BROADCAST);
                     asked.in_place++) {
                    asked.seed++;
                    asked.count = 20;
                    CHECK_OK(coll_whole(&asked, &memories[kind], 10));
                    asked.count = 4000;
                    CHECK_OK(coll_whole(&asked, &memories[kind], 60));
                }
    }
    CHECK_OK(llcl_team_free(asked.team));
    fence(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        region_drop(&memories[kind].shared);
}

TEST_MAIN(run)
