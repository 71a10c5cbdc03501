/* Broken if this fails: LLCL_CHECK lets a program go on after a call that failed, ends one whose
 * call succeeded, or does not say which call it was, where, and why; a program's own sentence is
 * not the last error.
 * kind: alone
 * modes: auto
 */
#include "test.h"
#include <sys/wait.h>

/* What a child writes on stderr that checks a call; its exit code must be as expected. */
static void child(int which, int code, char *text, size_t size)
{
    int ends[2], status = 0;
    size_t length = 0;
    ssize_t got;
    pid_t pid;
    CHECK(pipe(ends) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        switch (which) {
        case 0: LLCL_CHECK(LLCL_OK); break;
        case 1: LLCL_CHECK(llcl_init(NULL, NULL)); break;
        case 2: LLCL_CHECK(LLCL_RETRY_BUSY); break;
        default: llcl_must_succeed(LLCL_ERR_KEY, NULL, NULL, 7); break;
        }
        _exit(0);
    }
    close(ends[1]);
    while (length + 1 < size && (got = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), code);
}

int main(void)
{
    char text[1000];
    child(0, 0, text, sizeof text);
    CHECK(text[0] == 0);
    child(1, 1, text, sizeof text);
    CHECK(strstr(text, "check_macro.c:") != NULL && strstr(text, "llcl_init(NULL, NULL)") != NULL);
    CHECK(strstr(text, llcl_status_string(LLCL_ERR_INVALID)) != NULL);
    CHECK(strstr(text, "context is NULL") != NULL);
    child(2, 1, text, sizeof text);
    CHECK(strstr(text, llcl_status_string(LLCL_RETRY_BUSY)) != NULL);
    child(3, 1, text, sizeof text);
    CHECK(strstr(text, "?:7: ?") != NULL);
    llcl_set_last_error("its own");
    CHECK(strcmp(llcl_last_error(), "its own") == 0);
    llcl_set_last_error(NULL);
    llcl_set_last_error(llcl_last_error());
    CHECK(strcmp(llcl_last_error(), "its own") == 0);
    return 0;
}
