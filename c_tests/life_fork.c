/* A forked child shares its parent's sockets and memory, but has none of its threads: its calls
 * answer LLCL_ERR_STATE, whatever they are, its exit handlers may call llcl_finalize, and its
 * parent's rank goes on. If this were broken, the child would hang, or tell the world that its
 * parent leaves. system() and popen() do what they always do.
 * ranks: 2
 * modes: auto offload */
#include "shared.h"
#include <signal.h>
#include <sys/wait.h>

static llcl_context_t *mine;

static void at_exit(void)
{
    if (mine)
        llcl_finalize(mine);
}

static void refuse(const char *what, llcl_status_t status)
{
    if (status != LLCL_ERR_STATE || !strstr(llcl_last_error(), "fork")) {
        fprintf(stderr, "in the child %s gave %d (%s)\n", what, (int)status, llcl_last_error());
        _exit(1);
    }
}
#define REFUSED(expr) refuse(#expr, (expr))

struct everything {
    struct shared memory;
    llcl_team_t *team;
    llcl_coll_t *plan;
    uint32_t peer;
    void *alias;
};

static void handler(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
}

static void child(llcl_context_t *context, struct everything *all)
{
    llcl_write_value_params_t value = {0};
    llcl_read_params_t read = {0};
    llcl_fetch_add_params_t add = {0};
    llcl_am_params_t am = {0};
    llcl_capabilities_t about = {.struct_size = sizeof about};
    llcl_region_t *region;
    llcl_team_t *team;
    uint64_t word = 0;
    void *alias;
    alarm(8);
    value.peer = read.peer = add.peer = am.peer = all->peer;
    value.destination = read.source = add.target = remote_at(&all->memory, all->peer, 0);
    value.size = read.size = 8;
    value.value = 99;
    read.destination = llcl_region_local(all->memory.region, 64);
    REFUSED(llcl_try_write_value_async(context, &value));
    REFUSED(llcl_write_value(context, &value));
    value.flags = LLCL_FLAG_DEFER;
    REFUSED(llcl_try_write_value_async(context, &value));
    REFUSED(llcl_try_read_async(context, &read));
    REFUSED(llcl_read(context, &read));
    REFUSED(llcl_try_fetch_add_async(context, &add));
    REFUSED(llcl_try_am_async(context, &am));
    REFUSED(llcl_am(context, &am));
    REFUSED(llcl_am_register(context, 3, handler, NULL));
    REFUSED(llcl_flush_all(context));
    REFUSED(llcl_progress(context));
    REFUSED(llcl_wait_word(context, &word, 1, 1000));
    REFUSED(llcl_allgather_bytes(context, NULL, 0, NULL));
    REFUSED(llcl_query(context, &about));
    REFUSED(llcl_peer_alive(context, all->peer));
    REFUSED(llcl_region_allocate(context, 64, 0, &region));
    REFUSED(llcl_region_free(all->memory.region));
    REFUSED(llcl_region_alias(all->memory.region, 0, 1, NULL, LLCL_ACCESS_READ, &alias));
    REFUSED(llcl_region_unalias(all->memory.region, all->alias));
    REFUSED(llcl_team_world(context, &team));
    REFUSED(llcl_team_split(all->team, 0, 0, &team));
    REFUSED(llcl_team_free(all->team));
    REFUSED(llcl_team_barrier(all->team));
    REFUSED(llcl_coll_start(all->plan));
    REFUSED(llcl_coll_test(all->plan));
    REFUSED(llcl_coll_wait(all->plan, 1000));
    REFUSED(llcl_coll_free(all->plan));
    REFUSED(llcl_finalize(context));
    exit(7); /* with at_exit() */
}

static void run(llcl_context_t *context)
{
    struct everything all;
    llcl_coll_params_t params = {0};
    int status, round;
    FILE *from;
    char line[16] = "";
    all.peer = 1 - llcl_rank(context);
    share(context, ALLOCATED, 4096, &all.memory);
    CHECK_OK(llcl_am_register(context, 1, handler, NULL));
    CHECK_OK(llcl_team_world(context, &all.team));
    params.team = all.team;
    CHECK_OK(llcl_barrier_init(&params, &all.plan));
    CHECK_OK(llcl_region_alias(all.memory.region, 0, 1, NULL, LLCL_ACCESS_READ, &all.alias));
    mine = context;
    CHECK(atexit(at_exit) == 0);
    for (round = 0; round < 3; round++) {
        pid_t pid;
        CHECK_OK(llcl_coll_start(all.plan));
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(context, &all);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status));
        CHECK_EQUAL(WEXITSTATUS(status), 7);
        CHECK_OK(llcl_coll_wait(all.plan, -1));
        CHECK_OK(llcl_team_barrier(all.team));
        fence(context);
        CHECK_EQUAL(word_get(all.memory.words), 0);
    }
    CHECK_EQUAL(system("exit 3"), 3 << 8);
    from = popen("echo out", "r");
    CHECK(from != NULL && fgets(line, sizeof line, from) != NULL && pclose(from) == 0);
    CHECK(strcmp(line, "out\n") == 0);
    mine = NULL;
    share_end(context, &all.memory);
    CHECK_OK(llcl_coll_free(all.plan));
}

TEST_MAIN(run)
