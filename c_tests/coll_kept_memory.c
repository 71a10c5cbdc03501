/* Broken if this fails: the memory of plans that a team keeps for earlier calls, or of their copies
 * of buffers, leads to a refusal of a call for which LLCL_COLL_MEMORY would do.
 * ranks: 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define TURNS 8u
#define BYTES ((size_t)1 << 20)

/* Sums of other lengths in each turn, so each needs a plan. Some lengths come again. */
static void sums(llcl_team_t *team, const llcl_local_t memory[2], const uint64_t *numbers, int blocking,
                 const char *algorithm)
{
    uint64_t turn, done = 0, n = llcl_team_size(team);
    for (turn = 0; turn < 2 * TURNS; turn++) {
        llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
        params.team = team;
        params.send = memory[0];
        params.receive = memory[1];
        params.count = BYTES / 8 - turn % TURNS;
        params.type = LLCL_TYPE_U64;
        params.op = LLCL_OP_ADD;
        params.algorithm = algorithm;
        if (blocking) {
            CHECK_OK(llcl_allreduce(&params));
        } else {
            params.on_complete = llcl_add_on(&done);
            POST(llcl_allreduce_async(&params));
            AWAIT(&done, turn + 1);
            CHECK_EQUAL(word_get(&done), turn + 1);
        }
        CHECK_EQUAL(numbers[0], n);
        CHECK_EQUAL(numbers[params.count - 1], n);
    }
}

static void run(llcl_context_t *context)
{
    struct shared send, receive;
    uint64_t *heap = malloc(2 * BYTES), i;
    llcl_local_t local[2], shared[2];
    int blocking;
    CHECK(heap != NULL);
    share(context, ALLOCATED, BYTES, &send);
    share(context, ALLOCATED, BYTES, &receive);
    for (i = 0; i < BYTES / 8; i++)
        heap[i] = send.words[i] = 1;
    local[0] = llcl_local_address(heap);
    local[1] = llcl_local_address(heap + BYTES / 8);
    shared[0] = llcl_region_local(send.region, 0);
    shared[1] = llcl_region_local(receive.region, 0);
    for (blocking = 0; blocking < 2; blocking++) {
        llcl_team_t *team = NULL;
        /* A team of its own, since the kept plans of another team are not given up. */
        CHECK_OK(llcl_team_split(coll_world(context), 0, 0, &team));
        /* Copies of buffers, at all ranks and at rank 0 alone. */
        sums(team, local, heap + BYTES / 8, blocking, NULL);
        if (llcl_rank(context) == 0)
            sums(team, local, heap + BYTES / 8, blocking, NULL);
        else
            sums(team, shared, receive.words, blocking, NULL);
        /* Scratch memory. */
        sums(team, shared, receive.words, blocking, "ring");
        CHECK_OK(llcl_team_free(team));
        fence(context);
    }
    free(heap);
    share_end(context, &send);
    share_end(context, &receive);
}

int main(void)
{
    coll_default("LLCL_COLL_MEMORY", "6");
    return test_main(run, NULL);
}
