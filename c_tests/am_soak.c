/* Broken if this fails: a random mixture of messages of all sizes and kinds, answered at once,
 * later or not, in all tiers, from several threads and from handlers and callbacks, loses, doubles
 * or changes one, or locks up. Prints its seed; LLCL_TEST_SEED repeats a run, LLCL_TEST_MS sets its
 * length.
 * ranks: 3
 * cma: on off
 * policies: acquire limit distributed
 * threads: 2
 * timeout: 60
 */
#include "am_soak.h"

static void run(llcl_context_t *context)
{
    struct soak *soak = soak_begin(context, number_from("LLCL_TEST_SEED", (uint64_t)now_ns() / 1000));
    soak_all(soak, (int64_t)number_from("LLCL_TEST_MS", 500) * 1000000);
}

TEST_MAIN_CONFIG(run, soak_configure)
