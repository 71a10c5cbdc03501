/* Broken if this fails: a child that is forked inside a handler or callback returns from it and
 * goes on with the library's call of its parent, which it must not share. Both then handle the same
 * messages and give their slots back, or execute the same operations.
 * ranks: 2
 */
#include "am.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { MESSAGES = 2000 };

/* In memory that parent and child share. */
struct counts {
    uint64_t handled, called, forked;
};

/* Forks, and returns in the child; the parent sees how the child ends. */
static void fork_once(struct counts *counts)
{
    static const struct rlimit none = {0, 0};
    char text[1024] = "";
    size_t size = 0;
    ssize_t more;
    int ends[2], status = -1;
    pid_t pid;
    if (word_add(&counts->forked, 1) > 0)
        return;
    CHECK(pipe(ends) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(8);
        if (dup2(ends[1], 2) != 2 || setrlimit(RLIMIT_CORE, &none) != 0)
            _exit(1);
        close(ends[0]);
        close(ends[1]);
        return;
    }
    close(ends[1]);
    while ((more = read(ends[0], text + size, sizeof text - 1 - size)) > 0)
        size += (size_t)more;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(WTERMSIG(status), SIGABRT);
    CHECK(strstr(text, "has returned in a child that was forked inside it") != NULL);
}

static void handler(llcl_am_t *message, void *data)
{
    struct counts *counts = data;
    (void)message;
    word_add(&counts->handled, 1);
    fork_once(counts);
}

static void callback(void *data, llcl_status_t status)
{
    struct counts *counts = data;
    CHECK_OK(status);
    word_add(&counts->called, 1);
    fork_once(counts);
}

static void run(llcl_context_t *context)
{
    struct counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint32_t peer = 1 - llcl_rank(context);
    struct shared memory;
    int i;
    CHECK(counts != MAP_FAILED);
    share(context, ALLOCATED, 4096, &memory);
    CHECK_OK(llcl_am_register(context, 1, handler, counts));
    fence(context);
    if (llcl_rank(context) == 1)
        for (i = 0; i < MESSAGES; i++) {
            llcl_am_params_t am = am_to(peer, 1, NULL, 0);
            CHECK_OK(llcl_am_async(context, &am));
        }
    CHECK_OK(llcl_flush_all(context));
    fence(context);
    if (llcl_rank(context) == 0) {
        CHECK_OK(llcl_wait_word(context, &counts->handled, MESSAGES, -1));
        CHECK_EQUAL(word_get(&counts->handled), MESSAGES);
    }
    word_set(&counts->forked, 0);
    if (llcl_rank(context) == 0)
        for (i = 0; i < 3; i++) {
            llcl_write_value_params_t value = LLCL_WRITE_VALUE_PARAMS_INIT;
            value.peer = peer;
            value.destination = remote_at(&memory, peer, 0);
            value.size = 8;
            value.on_complete = llcl_callback(callback, counts);
            CHECK_OK(llcl_write_value_async(context, &value));
            CHECK_OK(llcl_flush_all(context));
        }
    fence(context);
    CHECK_EQUAL(word_get(&counts->called), llcl_rank(context) == 0 ? 3 : 0);
    share_end(context, &memory);
    CHECK(munmap(counts, sizeof *counts) == 0);
}

static void configure(llcl_config_t *config)
{
    config->am_handlers = am_handlers_by_mode();
}

TEST_MAIN_CONFIG(run, configure)
