/* Broken if this fails: a rank that must contact another one to answer it, while the launcher does not answer,
 * keeps those waiting that it has contacted before.
 * ranks: 3
 * cma: off
 */
#include "am.h"

#include <signal.h>

#define SIZE 4096
#define STOPPED_MS 1000

static int orders[2];

/* A process that is no rank stops the launcher when it is told so, and always lets it go on. */
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
            sleep_ms(STOPPED_MS);
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

/* Both need rank 0's threads, and an answer of it. */
static int64_t ask(llcl_context_t *context, const struct shared *registered, const struct shared *mine)
{
    llcl_write_params_t write = {0};
    llcl_am_params_t message = am_to(0, 1, NULL, 0);
    char reply[3];
    int64_t begin = now_ns();
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
    return now_ns() - begin;
}

static void run(llcl_context_t *context)
{
    struct shared registered, mine;
    uint32_t me = llcl_rank(context);
    int64_t took;
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
    if (me == 0) {
        CHECK(write(orders[1], "s", 1) == 1);
    } else {
        sleep_ms(me == 1 ? 150 : 300);
        took = ask(context, &registered, &mine);
        if (me == 2 && took > INT64_C(350000000))
            fprintf(stderr, "it took %lld ms\n", (long long)(took / 1000000));
        CHECK(me == 1 || took < INT64_C(350000000));
        CHECK(me == 2 || took > INT64_C(350000000));
    }
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
