/* Broken if this fails: a region goes away under accepted operations that use it as their local
 * side: llcl_region_free must wait for them, or, in a callback, where nothing may wait, answer
 * LLCL_RETRY_BUSY and leave the region as it was.
 * ranks: 2
 * cma: off
 */
#include "stopped.h"

struct freeing {
    llcl_region_t *region;
    uint64_t returned;
    llcl_status_t status;
};

static void *free_it(void *data)
{
    struct freeing *freeing = data;
    while ((freeing->status = llcl_region_free(freeing->region)) == LLCL_RETRY_BUSY)
        usleep(500);
    word_set(&freeing->returned, 1);
    return NULL;
}

static void in_callback(void *data, llcl_status_t status)
{
    struct freeing *freeing = data;
    CHECK_OK(status);
    freeing->status = llcl_region_free(freeing->region);
    word_set(&freeing->returned, 1);
}

static void post_read(llcl_context_t *context, const struct shared *target, struct shared *mine,
                      struct tally *tally)
{
    llcl_read_params_t read = {0};
    read.peer = 1;
    read.source = remote_at(target, 1, 0);
    read.destination = llcl_region_local(mine->region, 0);
    read.size = 64;
    read.on_complete = count_in(tally);
    POST(llcl_try_read_async(context, &read));
}

static void callback_is_told(llcl_context_t *context, struct shared *mine)
{
    struct freeing freeing = {0};
    llcl_write_value_params_t value = {0};
    freeing.region = mine->region;
    value.peer = 0;
    value.destination = llcl_region_remote(mine->region, 128);
    value.value = 5;
    value.size = 8;
    value.on_complete = llcl_callback(in_callback, &freeing);
    POST(llcl_try_write_value_async(context, &value));
    AWAIT(&freeing.returned, 1);
    CHECK_STATUS(freeing.status, LLCL_RETRY_BUSY);
    CHECK_EQUAL(llcl_region_size(mine->region), 4096);
}

static void check(llcl_context_t *context, const struct shared *target)
{
    struct shared mine, idle;
    struct tally tally = {0, 0, 0};
    struct freeing freeing = {0};
    pthread_t thread;
    pid_t stopped;
    region_make(context, ALLOCATED, 4096, &mine);
    region_make(context, REGISTERED, 4096, &idle);
    stopped = peer_stop(context, 1);
    post_read(context, target, &mine, &tally);
    callback_is_told(context, &mine);
    /* Refused means unchanged: the region is still good. */
    post_read(context, target, &mine, &tally);
    freeing.region = mine.region;
    CHECK(pthread_create(&thread, NULL, free_it, &freeing) == 0);
    sleep_ms(50);
    CHECK_EQUAL(word_get(&freeing.returned), 0);
    CHECK_EQUAL(word_get(&tally.fired), 0);
    CHECK(kill(stopped, SIGCONT) == 0);
    AWAIT(&freeing.returned, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(freeing.status);
    /* Free only after the operations had ended. */
    CHECK_EQUAL(word_get(&tally.fired), 2);
    CHECK_EQUAL(tally.failed, 0);
    free(mine.remote);
    region_drop(&idle);
}

static void run(llcl_context_t *context)
{
    struct shared target;
    share(context, REGISTERED, 64, &target);
    fence(context);
    if (llcl_rank(context) == 0)
        check(context, &target);
    share_end(context, &target);
}

TEST_MAIN(run)
