/* Broken if this fails: a rank that has no free descriptor when it is asked for something for the
 * first time never answers, though it has some again later; or tries again and again without a
 * pause; or does not tell its own user why.
 * cma: off
 */
#include "shared.h"

static int64_t cpu_ns(void)
{
    struct timespec used;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* The library tries to reach rank 0 meanwhile, about every 50 ms. */
static void leave_it_alone(llcl_context_t *context, llcl_remote_t there)
{
    llcl_write_value_params_t value = {0};
    llcl_status_t status;
    int64_t used, begin;
    int time;
    value.destination = there;
    value.size = 8;
    for (time = 0; time < 3; time++) {
        begin = now_ns();
        while ((status = llcl_try_write_value_async(context, &value)) == LLCL_RETRY_CONNECTING)
            CHECK(now_ns() - begin < TEST_PATIENCE_NS);
        CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    }
    begin = now_ns();
    used = cpu_ns();
    sleep_ms(300);
    CHECK((cpu_ns() - used) * 8 < now_ns() - begin);
}

static void run(llcl_context_t *context)
{
    struct shared registered, mine;
    share(context, REGISTERED, 4096, &registered);
    share(context, ALLOCATED, 64, &mine);
    registered.words[0] = 77;
    if (llcl_rank(context) == 1) {
        descriptors_limit(3);
        fence(context);
        leave_it_alone(context, remote_at(&mine, 0, 0));
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
    share_end(context, &mine);
}

TEST_MAIN(run)
