/* Broken if this fails: an allocation inside the library that fails (each one in turn, alone or
 * with all that follow) ends the process, makes a call hang, or loses an operation under way; while
 * there is no memory, a call that needs some is not answered by LLCL_ERR_NO_MEMORY; or a call that
 * was refused does not succeed when there is memory again.
 * kind: alone
 * modes: auto
 * timeout: 120
 */
#include "am.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/wait.h>

#define NOTHING_FAILED 10
#define MOST 3000
#define AT_A_TIME 8
#define REGIONS 60000

static long *fail_at, *failed;
static int *fail_on;
static uint64_t handled[2];

static void handler(llcl_am_t *message, void *data)
{
    if (am_wants_reply(message))
        CHECK_OK(llcl_am_reply(message, "yes", 4));
    word_add(data, 1);
}

static void use_region(llcl_context_t *context, llcl_region_t *region)
{
    llcl_write_value_params_t value = {0};
    llcl_remote_t mine = llcl_region_remote(region, 0), all[2];
    uint64_t written = 0;
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    value.peer = 1 - llcl_rank(context);
    value.destination = all[value.peer];
    value.value = 4711;
    value.size = 8;
    value.flags = LLCL_FLAG_DEFER;
    value.on_complete = llcl_store_on(&written);
    CHECK_OK(llcl_write_value_async(context, &value));
    CHECK_OK(llcl_wait_word(context, &written, 1, TEST_PATIENCE_NS));
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_barrier(context));
    CHECK_EQUAL(*(uint64_t *)llcl_region_address(region), 4711);
    CHECK_OK(llcl_region_free(region));
}

static void use_messages(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), way;
    llcl_am_params_t am = am_to(1 - me, 1, "head", 4);
    char reply[8];
    CHECK_OK(llcl_am_register(context, 1, handler, &handled[me]));
    CHECK_OK(llcl_barrier(context));
    for (way = 0; way < 2; way++) {
        am.flags = way ? LLCL_FLAG_DEFER : 0;
        am.reply = NULL;
        am.reply_capacity = 0;
        CHECK_OK(llcl_am_async(context, &am));
        am.reply = reply;
        am.reply_capacity = sizeof reply;
        CHECK_OK(llcl_am(context, &am));
    }
    CHECK_OK(llcl_wait_word(context, &handled[me], 4, TEST_PATIENCE_NS));
}

static void use_plans(llcl_context_t *context)
{
    static uint64_t numbers[2][4];
    llcl_coll_params_t params = {0};
    llcl_region_t *region;
    llcl_coll_t *plan;
    llcl_team_t *half;
    uint32_t me = llcl_rank(context);
    CHECK_OK(llcl_team_world(context, &params.team));
    CHECK_OK(llcl_team_barrier(params.team));
    CHECK_OK(llcl_region_register(context, numbers[me], sizeof numbers[me], 0, &region));
    numbers[me][0] = me + 1;
    params.send = llcl_region_local(region, 0);
    params.receive = llcl_region_local(region, 8);
    params.count = 1;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    CHECK_OK(llcl_coll_start(plan));
    CHECK_OK(llcl_coll_wait(plan, -1));
    CHECK_EQUAL(numbers[me][1], 3);
    CHECK_OK(llcl_coll_free(plan));
    CHECK_OK(llcl_team_split(params.team, me, 0, &half));
    CHECK_OK(llcl_team_free(half));
    CHECK_OK(llcl_region_free(region));
}

static void use(llcl_context_t *context)
{
    static unsigned char memory[2][4096];
    llcl_region_t *region;
    CHECK_OK(llcl_region_allocate(context, 4096, 0, &region));
    use_region(context, region);
    CHECK_OK(llcl_region_register(context, memory[llcl_rank(context)], 4096, 0, &region));
    use_region(context, region);
    use_messages(context);
    use_plans(context);
}

static int one_life(long number, int on)
{
    *fail_on = on;
    *fail_at = number;
    test_threads(use, NULL, 2);
    return *failed ? 0 : NOTHING_FAILED;
}

/* The command queue is larger than what the library has in reserve. */
static int large_context(long number, int on)
{
    llcl_context_t *context;
    llcl_status_t status;
    *fail_on = on;
    *fail_at = number;
    CHECK(setenv("LLCL_QUEUE_ENTRIES", "65536", 1) == 0);
    status = llcl_init(NULL, &context);
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    *fail_at = 0;
    CHECK_OK(llcl_init(NULL, &context));
    CHECK_OK(llcl_finalize(context));
    return 0;
}

/* Regions until the reserve runs low. */
static int many_regions(long number, int on)
{
    static llcl_region_t *regions[REGIONS];
    static unsigned char memory[8];
    llcl_context_t *context;
    llcl_status_t status = LLCL_OK;
    int made = 0, at;
    CHECK(setenv("LLCL_REGIONS", "65535", 1) == 0);
    CHECK_OK(llcl_init(NULL, &context));
    *fail_on = on;
    *fail_at = number;
    while (made < REGIONS && status == LLCL_OK)
        if ((status = llcl_region_register(context, memory, 8, 0, &regions[made])) == LLCL_OK)
            made++;
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    CHECK(strstr(llcl_last_error(), "reserve"));
    *fail_at = 0;
    for (at = 0; at < made; at++)
        CHECK_OK(llcl_region_free(regions[at]));
    CHECK_OK(llcl_region_register(context, memory, 8, 0, &regions[0]));
    CHECK_OK(llcl_finalize(context));
    return 0;
}

static pid_t child(int (*run)(long, int), long number, int on)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(60);
        _exit(run(number, on));
    }
    return pid;
}

/* Whether an allocation has failed in it. */
static int has_failed(pid_t pid, long number)
{
    int state = 0;
    CHECK(waitpid(pid, &state, 0) == pid);
    if (state != 0 && !(WIFEXITED(state) && WEXITSTATUS(state) == NOTHING_FAILED)) {
        fprintf(stderr, "allocation %ld: wait status 0x%x\n", number, (unsigned)state);
        CHECK(state == 0);
    }
    return state == 0;
}

/* Several lives at a time, since each spends most of it asleep. False: one came to its end before
 * its allocation. */
static int lives(long first)
{
    pid_t alone[AT_A_TIME], on;
    int at, all = 1;
    for (at = 0; at < AT_A_TIME; at++)
        alone[at] = child(one_life, first + at, 0);
    on = child(one_life, first, 1);
    for (at = 0; at < AT_A_TIME; at++)
        all &= has_failed(alone[at], first + at);
    has_failed(on, first);
    return all;
}

/* Begins again with the allocator of preload/fail_malloc.c. */
static void preload(void)
{
    char self[PATH_MAX], object[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
    snprintf(object, sizeof object, "%s", self);
    strcpy(strrchr(object, '/'), "/fail_malloc.so");
    CHECK(setenv("LD_PRELOAD", object, 1) == 0);
    /* AT_A_TIME processes share the cores. */
    CHECK(setenv("LLCL_FINALIZE_MS", "20000", 1) == 0);
    execl(self, self, (char *)NULL);
    test_fail(__FILE__, __LINE__, "execl");
}

int main(void)
{
    long number = 1;
    fail_at = (long *)dlsym(RTLD_DEFAULT, "fail_malloc_at");
    fail_on = (int *)dlsym(RTLD_DEFAULT, "fail_malloc_on");
    failed = (long *)dlsym(RTLD_DEFAULT, "fail_malloc_done");
    if (!fail_at)
        preload();
    while (number < MOST && lives(number))
        number += AT_A_TIME;
    printf("%ld allocations and more have failed in turn\n", number - 1);
    CHECK(number > 100 && number < MOST);
    CHECK(has_failed(child(large_context, 1, 1), 1));
    CHECK(has_failed(child(many_regions, 1, 1), 1));
    return 0;
}
