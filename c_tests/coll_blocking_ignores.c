/* Broken if this fails: a blocking form of which no plan is kept looks at `depth` or
 * LLCL_COLL_REBIND, which the blocking forms ignore.
 * ranks: 1 2
 * modes: auto
 * threads: yes
 */
#include "coll.h"

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    uint64_t one = 1, sum = 0;
    uint32_t me = llcl_rank(context), turn;
    params.team = coll_world(context);
    params.send = llcl_local_address(&one);
    params.receive = llcl_local_address(&sum);
    params.count = 1;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    for (turn = 0; turn < 4; turn++) {
        params.depth = turn < 2 ? me : 100;
        params.flags = turn % 2 && me == 0 ? LLCL_COLL_REBIND : 0;
        sum = 0;
        CHECK_OK(llcl_allreduce(&params));
        CHECK_EQUAL(sum, llcl_size(context));
    }
}

int main(void)
{
    CHECK(setenv("LLCL_COLL_CACHE", "0", 1) == 0);
    return test_main(run, NULL);
}
