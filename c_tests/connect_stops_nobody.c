/* Broken if this fails: a rank that must contact another one to answer it, while the launcher does
 * not answer, keeps those waiting that it has contacted before.
 * ranks: 3
 * cma: off
 */
#include "am.h"

#include <signal.h>

#define SIZE 4096
#define STOPPED_MS_AT_MOST 10000

static int orders[2];

/* A process that is no rank stops the launcher when it is told so. Rank 2 lets it go on; that
 * process does so if rank 2 never comes to it. */
static void configure(llcl_config_t *config)
{
    pid_t launcher = getppid();
    char order;
    (void)config;
    if (strcmp(getenv("LLCL_RANK"), "0") != 0)
        return;
    CHECK(pipe(orders) == 0);
    if (fork() == 0) {
        int fd;
        for (fd = 0; fd < 256; fd++)
            if (fd != orders[0])
                close(fd);
        if (read(orders[0], &order, 1) == 1 && kill(launcher, SIGSTOP) == 0) {
            sleep_ms(STOPPED_MS_AT_MOST);
            kill(launcher, SIGCONT);
        }
        _exit(0);
    }
}

static void answer(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK_OK(llcl_am_reply(message, "yes", 3));
}

static int launcher_is_stopped(void)
{
    char path[64], line[256] = "";
    FILE *stat;
    CHECK(snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid()) < (int)sizeof path);
    stat = fopen(path, "r");
    CHECK(stat != NULL && fgets(line, sizeof line, stat) != NULL && fclose(stat) == 0);
    CHECK(strrchr(line, ')') != NULL);
    return strrchr(line, ')')[2] == 'T';
}

/* Both need rank 0's threads, and an answer of it. */
static void ask(llcl_context_t *context, const struct shared *registered, const struct shared *mine)
{
    llcl_write_params_t write = {0};
    llcl_am_params_t message = am_to(0, 1, NULL, 0);
    char reply[3];
    write.source = llcl_region_local(mine->region, 0);
    write.destination = remote_at(registered, 0, 64 * llcl_rank(context));
    write.size = 64;
    write.on_local = write.on_complete = llcl_no_completion();
    CHECK_OK(llcl_write(context, &write));
    message.reply = reply;
    message.reply_capacity = sizeof reply;
    message.on_local = message.on_complete = llcl_no_completion();
    CHECK_OK(llcl_am(context, &message));
    CHECK(memcmp(reply, "yes", 3) == 0);
}

/* Rank 0 stops the launcher when it has answered the fences of all: rank 1 tells rank 2, rank 2
 * rank 0, which does not get to know rank 1. */
static void all_have_left_the_fence(llcl_context_t *context, const struct shared *mine)
{
    uint32_t me = llcl_rank(context);
    llcl_write_value_params_t told = LLCL_WRITE_VALUE_PARAMS_INIT;
    if (me != 1)
        CHECK_OK(llcl_wait_word(context, mine->words, 1, 15000000000ll));
    if (me != 0) {
        told.peer = me == 1 ? 2 : 0;
        told.destination = remote_at(mine, told.peer, 0);
        told.value = 1;
        told.size = 8;
        CHECK_OK(llcl_write_value(context, &told));
    }
}

static void run(llcl_context_t *context)
{
    struct shared registered, mine;
    uint32_t me = llcl_rank(context);
    int tries;
    if (me == 0)
        am_register(context, 1, answer, NULL);
    share(context, REGISTERED, SIZE, &registered);
    share(context, ALLOCATED, SIZE, &mine);
    /* Rank 0 knows rank 2 from here on, and rank 1 knows rank 0. */
    if (me == 2)
        ask(context, &registered, &mine);
    if (me == 1)
        CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    all_have_left_the_fence(context, &mine);
    if (me == 0) {
        CHECK(write(orders[1], "s", 1) == 1);
    } else {
        for (tries = 0; !launcher_is_stopped() && tries < 1000; tries++)
            sleep_ms(10);
        if (me == 2)
            sleep_ms(200); /* Rank 1's requests are at rank 0 by now, which must ask the launcher for rank 1. */
        ask(context, &registered, &mine);
        CHECK(launcher_is_stopped() == (me == 2));
        if (me == 2)
            CHECK(kill(getppid(), SIGCONT) == 0);
    }
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
