/* Broken if this fails: a rank of engine offload, which has waited at once in many rounds and so
 * counts as one that polls its queue, does not poll in one round, and no other thread runs its
 * step, because the other rank has engine thread and runs only its own steps. Rank 0 waits outside
 * of the library until rank 1 has ended its round, which needs a step of rank 0.
 * ranks: 2
 */
#include "coll.h"

#define ROUNDS 6
#define WARM 300

struct pair {
    struct shared memory; /* rank 0's words 0 and 1: rounds that rank 0 has started, and that rank 1 is through */
    uint64_t *words;
    llcl_coll_t *plan;
};

static void make(llcl_context_t *context, struct pair *pair)
{
    llcl_coll_params_t params = {0};
    uint32_t me = llcl_rank(context);
    share(context, ALLOCATED, 4096, &pair->memory);
    pair->words = me == 0 ? pair->memory.words
                          : llcl_remote_pointer(context, 0, remote_at(&pair->memory, 0, 0), 64);
    CHECK(pair->words != NULL);
    params.team = coll_world(context);
    params.receive = llcl_region_local(pair->memory.region, 1024);
    params.count = 8;
    params.type = LLCL_TYPE_U8;
    params.algorithm = "direct";
    params.engine = me == 0 ? LLCL_ENGINE_OFFLOAD : LLCL_ENGINE_THREAD;
    CHECK_OK(llcl_broadcast_init(&params, &pair->plan));
}

static void run(llcl_context_t *context)
{
    struct pair pair;
    uint64_t round;
    int i;
    make(context, &pair);
    for (round = 1; round <= ROUNDS; round++) {
        for (i = 0; i < WARM; i++) {
            CHECK_OK(llcl_coll_start(pair.plan));
            CHECK_OK(llcl_coll_wait(pair.plan, TEST_PATIENCE_NS));
        }
        fence(context);
        if (llcl_rank(context) == 0) {
            CHECK_OK(llcl_coll_start(pair.plan));
            word_set(&pair.words[0], round);
            AWAIT(&pair.words[1], round);
            CHECK_OK(llcl_coll_wait(pair.plan, TEST_PATIENCE_NS));
        } else {
            AWAIT(&pair.words[0], round);
            CHECK_OK(llcl_coll_start(pair.plan));
            CHECK_OK(llcl_coll_wait(pair.plan, 1000000000));
            word_set(&pair.words[1], round);
        }
    }
    CHECK_OK(llcl_coll_free(pair.plan));
    share_end(context, &pair.memory);
}

TEST_MAIN(run)
