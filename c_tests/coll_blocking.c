/* Broken if this fails: a blocking collective has another result than its plan, keeps memory (the
 * regions run out), or refuses at one rank a call that it accepts at another.
 * ranks: 1 2 3 5
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

static void configure(llcl_config_t *config)
{
    config->regions = 64;
}

static void once(const struct coll_case *asked, struct coll_memory *memory)
{
    struct coll_run run;
    size_t used = memory->used;
    coll_prepare(&run, asked, memory, memory);
    coll_fill(&run);
    CHECK_OK(coll_now(asked->operation, asked->varied, &run.params));
    coll_verify(&run);
    coll_forget(&run);
    memory->used = used;
}

/* What is refused at one rank is refused at all, and the team lives on. */
static void refused(const struct coll_case *asked, struct coll_memory *memory)
{
    struct coll_run run;
    size_t used = memory->used;
    coll_prepare(&run, asked, memory, memory);
    if (run.me == run.ranks - 1)
        run.params.type = 99;
    CHECK(asked->operation == BARRIER ||
          coll_now(asked->operation, asked->varied, &run.params) == LLCL_ERR_INVALID);
    coll_forget(&run);
    memory->used = used;
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t ranks = llcl_size(context), round;
    llcl_coll_params_t none = {0};
    coll_memory_make(context, ALLOCATED, (size_t)1 << 18, &memory);
    asked.team = coll_world(context);
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    for (round = 0; round < 12; round++)
        for (asked.operation = 0; asked.operation < OPERATIONS; asked.operation++)
            for (asked.varied = 0; asked.varied <= coll_operations[asked.operation].has_varied;
                 asked.varied++) {
                asked.seed++;
                asked.root = coll_operations[asked.operation].rooted ? round % ranks : 0;
                asked.in_place = asked.operation > BROADCAST && round % 3 == 2;
                asked.count = round % 4 == 3 ? 0 : 17 * round + 1;
                if (round % 4 == 1)
                    refused(&asked, &memory);
                once(&asked, &memory);
            }
    CHECK_STATUS(llcl_team_barrier(NULL), LLCL_ERR_INVALID);
    for (asked.operation = BROADCAST; asked.operation < OPERATIONS; asked.operation++)
        for (asked.varied = 0; asked.varied <= coll_operations[asked.operation].has_varied;
             asked.varied++) {
            CHECK_STATUS(coll_now(asked.operation, asked.varied, NULL), LLCL_ERR_INVALID);
            CHECK_STATUS(coll_now(asked.operation, asked.varied, &none), LLCL_ERR_INVALID);
        }
    fence(context);
    region_drop(&memory.shared);
}

TEST_MAIN_CONFIG(run, configure)
