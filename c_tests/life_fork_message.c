/* Broken if this fails: a forked child answers its parent's messages. The sender gets the child's
 * answer, and the parent's is lost: already an exit handler that releases a retained message ends
 * it at the sender.
 * ranks: 2
 */
#include "am.h"
#include <sys/wait.h>

struct got {
    llcl_context_t *context;
    llcl_am_t *kept;
    uint64_t messages;
};

static llcl_am_t *at_exit_kept;

static void at_exit(void)
{
    if (at_exit_kept)
        llcl_am_release(at_exit_kept);
}

static void refuse(llcl_status_t status)
{
    if (status != LLCL_ERR_STATE || !strstr(llcl_last_error(), "fork")) {
        fprintf(stderr, "gave %d (%s)\n", (int)status, llcl_last_error());
        _exit(1);
    }
}

static void child(void (*calls)(void *), void *data)
{
    int status = -1;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(8);
        calls(data);
        exit(7); /* with at_exit() */
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 7);
}

static void in_handler(void *data)
{
    llcl_am_params_t answer = am_to(0, 1, "01234567", 8);
    llcl_am_params_t longer = am_to(0, 1, "0123456789", 10);
    refuse(llcl_am_respond(data, &answer));
    refuse(llcl_am_respond(data, &longer));
    refuse(llcl_am_reply(data, "child", 6));
    refuse(llcl_am_release(data));
    if (llcl_am_retain(data) != NULL || !strstr(llcl_last_error(), "fork"))
        _exit(2);
}

static void with_retained(void *data)
{
    refuse(llcl_am_reply(data, "child", 6));
    refuse(llcl_am_release(data));
    at_exit_kept = data;
}

static void handler(llcl_am_t *message, void *data)
{
    struct got *got = data;
    CHECK_EQUAL(am_view(message).flags & LLCL_AM_RESPONSE, 0);
    child(in_handler, message);
    if (am_view(message).flags & LLCL_AM_WANTS_REPLY) {
        got->kept = llcl_am_retain(message);
        CHECK(got->kept != NULL);
    }
    word_add(&got->messages, 1);
    CHECK_OK(llcl_wake(got->context, 1));
}

static void run(llcl_context_t *context)
{
    struct got got = {context, NULL, 0};
    uint32_t me = llcl_rank(context);
    CHECK_OK(llcl_am_register(context, 1, handler, &got));
    CHECK(atexit(at_exit) == 0);
    fence(context);
    if (me == 1) {
        char reply[8] = "";
        size_t size = 99;
        llcl_am_params_t am = am_to(0, 1, NULL, 0);
        /* Nobody waits for the end of this one. */
        CHECK_OK(llcl_am_async(context, &am));
        am.reply = reply;
        am.reply_capacity = sizeof reply;
        am.reply_size = &size;
        CHECK_OK(llcl_am(context, &am));
        CHECK_EQUAL(size, 7);
        CHECK(strcmp(reply, "parent") == 0);
    } else {
        AM_AWAIT(context, &got.messages, 2);
        child(with_retained, got.kept);
        CHECK_OK(llcl_am_reply(got.kept, "parent", 7));
        CHECK_OK(llcl_am_release(got.kept));
    }
    fence(context);
    CHECK_EQUAL(word_get(&got.messages), me == 0 ? 2 : 0);
}

TEST_MAIN(run)
