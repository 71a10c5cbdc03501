/* Broken if this fails: making and ending contexts leaks descriptors, threads or mappings.
 * kind: alone
 * threads: yes
 */
#include "shared.h"

#include <dirent.h>

static unsigned entries(const char *directory)
{
    DIR *opened = opendir(directory);
    unsigned count = 0;
    CHECK(opened != NULL);
    while (readdir(opened) != NULL)
        count++;
    closedir(opened);
    return count;
}

static void run(llcl_context_t *context)
{
    struct shared target;
    llcl_write_value_params_t value = {0};
    share(context, ALLOCATED, 65536, &target);
    value.peer = (llcl_rank(context) + 1) % llcl_size(context);
    value.destination = remote_at(&target, value.peer, 0);
    value.value = 77;
    value.size = 8;
    CHECK_OK(llcl_write_value(context, &value));
    fence(context);
    CHECK_EQUAL(word_get(target.words), 77);
    share_end(context, &target);
}

/* A thread that was joined may still be listed for a moment: the count is read until it falls. */
static unsigned settled(const char *directory, unsigned expected)
{
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    unsigned count = entries(directory);
    while (count > expected && now_ns() < end) {
        sched_yield();
        count = entries(directory);
    }
    return count > expected ? count : expected;
}

int main(void)
{
    unsigned round, fds = 0, tasks = 0;
    for (round = 0; round < 20; round++) {
        CHECK(test_threads(run, NULL, 1 + round % 3) == 0);
        if (round == 2) {
            fds = entries("/proc/self/fd");
            tasks = entries("/proc/self/task");
        }
    }
    CHECK_EQUAL(settled("/proc/self/fd", fds), fds);
    CHECK_EQUAL(settled("/proc/self/task", tasks), tasks);
    return 0;
}
