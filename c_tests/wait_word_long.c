/* Broken if this fails: of 20 threads that have slept in llcl_wait_word for more than a second, one
 * runs although nobody wakes it, or is not woken by a write to its word, or not by llcl_wake after
 * a store through a pointer; or llcl_wake accepts a bad argument. (Which operations wake:
 * wait_word_wakes.)
 * ranks: 2
 * modes: auto offload
 */
#include "shared.h"

#include <sys/resource.h>

#define SLEEPERS 20
#define QUIET_MS 1000
#define MOST_SWITCHES 60 /* of a second: the library's own threads sleep for a second at a time */

struct sleeper {
    llcl_context_t *context;
    uint64_t *word;
    pthread_t thread;
    int64_t woken;
};

static void *sleep_once(void *data)
{
    struct sleeper *sleeper = data;
    CHECK_OK(llcl_wait_word(sleeper->context, sleeper->word, 1, TEST_PATIENCE_NS));
    sleeper->woken = now_ns();
    return NULL;
}

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

static void sleep_long(llcl_context_t *context, const struct shared *target)
{
    struct sleeper sleepers[SLEEPERS];
    int64_t slowest = 0;
    long before;
    uint32_t i;
    for (i = 0; i < SLEEPERS; i++) {
        sleepers[i].context = context;
        sleepers[i].word = &target->words[i];
        CHECK(pthread_create(&sleepers[i].thread, NULL, sleep_once, &sleepers[i]) == 0);
    }
    sleep_ms(1000);
    before = switches();
    sleep_ms(QUIET_MS);
    before = switches() - before;
    if (before > MOST_SWITCHES)
        fprintf(stderr, "%d sleepers ran %ld times in a second\n", SLEEPERS, before);
    CHECK(before <= MOST_SWITCHES);
    fence(context);
    for (i = 0; i < SLEEPERS; i++)
        CHECK(pthread_join(sleepers[i].thread, NULL) == 0);
    for (i = 0; i < SLEEPERS; i++) {
        int64_t took = sleepers[i].woken - (int64_t)word_get(&target->words[SLEEPERS + i]);
        slowest = took > slowest ? took : slowest;
    }
    CHECK(slowest < 2 * INT64_C(1000000000)); /* a lost wake-up takes TEST_PATIENCE_NS */
}

/* Each second word by a write, the others through a pointer. */
static void wake_all(llcl_context_t *context, const struct shared *target)
{
    uint64_t *pointer = llcl_remote_pointer(context, 1, remote_at(target, 1, 0), 4096);
    uint32_t i;
    CHECK(pointer != NULL);
    fence(context);
    for (i = 0; i < SLEEPERS; i++) {
        word_set(&pointer[SLEEPERS + i], (uint64_t)now_ns());
        if (i % 2 == 0) {
            llcl_write_value_params_t value = {0};
            value.peer = 1;
            value.destination = remote_at(target, 1, 8 * i);
            value.value = 1;
            value.size = 8;
            CHECK_OK(llcl_write_value(context, &value));
        } else {
            word_set(&pointer[i], 1);
            CHECK_OK(llcl_wake(context, 1));
        }
        sleep_ms(1);
    }
}

static void run(llcl_context_t *context)
{
    struct shared target;
    CHECK_STATUS(llcl_wake(NULL, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wake(context, llcl_size(context)), LLCL_ERR_INVALID);
    CHECK_OK(llcl_wake(context, 1 - llcl_rank(context)));
    CHECK_OK(llcl_wake(context, llcl_rank(context)));
    share(context, ALLOCATED, 4096, &target);
    if (llcl_rank(context) == 0)
        wake_all(context, &target);
    else
        sleep_long(context, &target);
    share_end(context, &target);
}

TEST_MAIN(run)
