/* Broken if this fails: a forked child that makes a world of its own waits for threads that its
 * parent had at the fork, and that the child does not have: for those in the middle of a copy, and
 * for those that make and end worlds. Such a child never ends.
 * ranks: 1
 */
#include "test.h"
#include <signal.h>
#include <sys/wait.h>

enum { SIZE = 1 << 20, FORKS = 60 };

struct parent {
    llcl_context_t *context;
    llcl_region_t *region;
    uint64_t stop;
};

static void use_own_world(void)
{
    llcl_world_t *world;
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_config_t config = LLCL_CONFIG_INIT;
    CHECK_OK(llcl_world_create(1, &world));
    config.world = world;
    CHECK_OK(llcl_init(&config, &context));
    CHECK_OK(llcl_region_allocate(context, 4096, 0, &region));
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_region_free(region));
    CHECK_OK(llcl_finalize(context));
    CHECK_OK(llcl_world_free(world));
}

static void *copy(void *data)
{
    struct parent *parent = data;
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    char *bytes = calloc(1, SIZE);
    CHECK(bytes != NULL);
    params.peer = llcl_rank(parent->context);
    params.source = llcl_local_address(bytes);
    params.destination = llcl_region_remote(parent->region, 0);
    params.size = SIZE;
    while (!word_get(&parent->stop))
        CHECK_OK(llcl_write(parent->context, &params));
    free(bytes);
    return NULL;
}

static void *make_and_end(void *data)
{
    struct parent *parent = data;
    while (!word_get(&parent->stop))
        use_own_world();
    return NULL;
}

static void fork_beside(struct parent *parent, void *(*work)(void *))
{
    pthread_t threads[2];
    int round;
    parent->stop = 0;
    for (round = 0; round < 2; round++)
        CHECK(pthread_create(&threads[round], NULL, work, parent) == 0);
    for (round = 0; round < FORKS; round++) {
        int status = -1;
        pid_t pid;
        usleep(round * 37 % 1000);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(20);
            use_own_world();
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_EQUAL(status, 0);
    }
    word_set(&parent->stop, 1);
    for (round = 0; round < 2; round++)
        CHECK(pthread_join(threads[round], NULL) == 0);
}

static void run(llcl_context_t *context)
{
    struct parent parent = {0};
    parent.context = context;
    CHECK_OK(llcl_region_allocate(context, SIZE, 0, &parent.region));
    fork_beside(&parent, copy);
    fork_beside(&parent, make_and_end);
    CHECK_OK(llcl_region_free(parent.region));
}

TEST_MAIN(run)
