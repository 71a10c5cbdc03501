/* Broken if this fails: a rank leaves llcl_allgather_bytes of size 0 before every rank has entered
 * it.
 * ranks: 2 3 5
 * modes: auto
 * threads: yes
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    uint32_t size = llcl_size(context), r, round;
    struct shared counters;
    share(context, ALLOCATED, 4096, &counters);
    for (round = 1; round <= 20; round++) {
        if (llcl_rank(context) == round % size)
            sleep_ms(2);
        for (r = 0; r < size; r++) {
            llcl_fetch_add_params_t add = {0};
            add.peer = r;
            add.target = remote_at(&counters, r, 0);
            add.operand = 1;
            CHECK_OK(llcl_fetch_add(context, &add));
        }
        fence(context);
        CHECK_EQUAL(word_get(counters.words), (uint64_t)round * size);
        fence(context);
    }
    share_end(context, &counters);
}

TEST_MAIN(run)
