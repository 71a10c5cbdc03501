/* Broken if this fails: a collective whose buffers lie in registered memory (heap or stack, which
 * peers do not map) at some ranks, all or none, as input, output or both, brings a wrong result.
 * ranks: 1 2 3 5
 * engines: offload thread
 * modes: auto direct
 * cma: on off
 * threads: yes
 */
#include "coll.h"

#define STACK (96u << 10)

/* Bit r of a mask: rank r's buffer is registered. */
static void try_masks(const struct coll_case *asked, struct coll_memory memories[3], uint64_t send_mask,
                      uint64_t receive_mask)
{
    struct coll_run run;
    uint32_t me = llcl_team_rank(asked->team);
    struct coll_memory *send = &memories[send_mask >> me & 1 ? 1 + asked->seed % 2 : 0];
    struct coll_memory *receive = &memories[receive_mask >> me & 1 ? 2 - asked->seed % 2 : 0];
    memories[0].used = memories[1].used = memories[2].used = 0;
    CHECK_OK(coll_make(&run, asked, send, receive));
    coll_rounds(&run, 3);
    coll_drop(&run);
}

static void run(llcl_context_t *context)
{
    static const uint64_t masks[][2] = {{~UINT64_C(0), ~UINT64_C(0)}, {0, ~UINT64_C(0)}, {~UINT64_C(0), 0},
                                        {1, 2}, {6, 1}, {0x15, 0x2a}, {4, 4}};
    unsigned char on_stack[STACK];
    struct coll_case asked = {0};
    struct coll_memory memories[3];
    uint32_t ranks = llcl_size(context);
    size_t mask;
    asked.team = coll_world(context);
    asked.op = LLCL_OP_ADD;
    coll_memory_make(context, ALLOCATED, STACK, &memories[0]);
    coll_memory_make(context, REGISTERED, STACK, &memories[1]);
    memories[2].used = 0;
    memories[2].shared.bytes = on_stack;
    memories[2].shared.size = STACK;
    CHECK_OK(llcl_region_register(context, on_stack, STACK, 0, &memories[2].shared.region));
    for (mask = 0; mask < sizeof masks / sizeof masks[0]; mask++)
        for (asked.operation = BROADCAST; asked.operation < OPERATIONS; asked.operation++)
            for (asked.varied = 0; asked.varied <= coll_operations[asked.operation].has_varied;
                 asked.varied++) {
                asked.seed++;
                asked.in_place = asked.operation != BROADCAST && asked.seed % 3 == 0;
                asked.root = coll_operations[asked.operation].rooted ? (uint32_t)asked.seed % ranks : 0;
                asked.type = asked.seed % 2 ? LLCL_TYPE_U16 : LLCL_TYPE_F64;
                asked.count = asked.seed % 4 ? 33 * (asked.seed % 4) + 1 : 900;
                try_masks(&asked, memories, masks[mask][0], masks[mask][1]);
            }
    fence(context);
    CHECK_OK(llcl_region_free(memories[2].shared.region));
    region_drop(&memories[0].shared);
    region_drop(&memories[1].shared);
}

int main(void)
{
    coll_default("LLCL_COLL_SEGMENT", "1024");
    return test_main(run, NULL);
}
