/* A callback that leaves by pthread_exit, or is cancelled, ends the process with a message that
 * names it; one that leaves by longjmp is named by the next call that may not be made in a
 * callback, and the stack that it has left is not written to. If this were broken, the program
 * would hang or fail somewhere else, and nobody would know why.
 * kind: alone
 * modes: auto */
#include "test.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

static jmp_buf back;

static void leaves_by_pthread_exit(void *data, llcl_status_t status)
{
    (void)data;
    (void)status;
    pthread_exit(NULL);
}

static void leaves_by_longjmp(void *data, llcl_status_t status)
{
    (void)data;
    (void)status;
    longjmp(back, 1);
}

static void does_nothing(void *data, llcl_status_t status)
{
    (void)data;
    (void)status;
}

static llcl_status_t post(llcl_context_t *context, llcl_callback_fn function, uint32_t flags)
{
    static llcl_region_t *region;
    llcl_write_value_params_t value = {0};
    if (!region)
        CHECK_OK(llcl_region_allocate(context, 64, 0, &region));
    value.destination = llcl_region_remote(region, 0);
    value.size = 8;
    value.flags = flags;
    value.on_complete = llcl_callback(function, NULL);
    return llcl_try_write_value_async(context, &value);
}

/* Whether callbacks that now wait for ever are kept outside of the stack that was left: its place
 * is this array's. */
static void use_the_stack_again(llcl_context_t *context)
{
    volatile unsigned char stack[65536];
    size_t i;
    int posted = 0;
    for (i = 0; i < sizeof stack; i++)
        stack[i] = 0x5a;
    while (posted < 1000 && post(context, does_nothing, 0) == LLCL_OK)
        posted++;
    CHECK(posted > 0 && posted < 1000);
    for (i = 0; i < sizeof stack; i++)
        CHECK_EQUAL(stack[i], 0x5a);
}

/* What a child says on stderr that does `what`, and how it ends. */
static int child(int what, char *said, size_t room)
{
    int ends[2], status;
    ssize_t got;
    size_t all = 0;
    pid_t pid;
    CHECK(pipe(ends) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        llcl_context_t *context;
        dup2(ends[1], 2);
        close(ends[1]);
        alarm(10);
        CHECK_OK(llcl_init(NULL, &context));
        if (what < 2) {
            post(context, leaves_by_pthread_exit, what == 0 ? 0 : LLCL_FLAG_DEFER);
            sleep(20);
        } else if (setjmp(back) == 0) {
            post(context, leaves_by_longjmp, 0);
        } else {
            use_the_stack_again(context);
            CHECK_STATUS(llcl_flush_all(context), LLCL_ERR_STATE);
            fprintf(stderr, "%s\n", llcl_last_error());
        }
        _exit(0);
    }
    close(ends[1]);
    while (all + 1 < room && (got = read(ends[0], said + all, room - 1 - all)) > 0)
        all += (size_t)got;
    said[all] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static void expect(const char *said, const char *text)
{
    if (strstr(said, text))
        return;
    fprintf(stderr, "expected \"%s\" in: %s\n", text, said);
    test_fail(__FILE__, __LINE__, "what was said");
}

int main(void)
{
    char said[4096];
    int what, status;
    for (what = 0; what < 2; what++) {
        status = child(what, said, sizeof said);
        expect(said, "libllcl: the function ");
        expect(said, "callback_leaves was left by an exception, pthread_exit or cancellation");
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    status = child(2, said, sizeof said);
    expect(said, "callback_leaves, or has left it by longjmp");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}
