/* Broken if this fails: a rank that has no free descriptor when it is asked for something for the first time never
 * answers, though it has some again later.
 * cma: off
 */
#include "shared.h"

static void run(llcl_context_t *context)
{
    struct shared registered, mine;
    share(context, REGISTERED, 4096, &registered);
    region_make(context, ALLOCATED, 64, &mine);
    registered.words[0] = 77;
    if (llcl_rank(context) == 1) {
        descriptors_limit(3);
        fence(context);
        usleep(100000);
        CHECK_EQUAL(word_get(&registered.words[1]), 0);
        descriptors_limit(256);
        AWAIT(&registered.words[1], 1);
    } else {
        llcl_read_params_t read = {0};
        llcl_write_value_params_t value = {0};
        fence(context);
        read.peer = value.peer = 1;
        read.source = remote_at(&registered, 1, 0);
        read.destination = llcl_region_local(mine.region, 0);
        read.size = value.size = 8;
        CHECK_OK(llcl_read(context, &read));
        CHECK_EQUAL(mine.words[0], 77);
        value.destination = remote_at(&registered, 1, 8);
        value.value = 1;
        CHECK_OK(llcl_write_value(context, &value));
    }
    share_end(context, &registered);
    region_drop(&mine);
}

TEST_MAIN(run)
