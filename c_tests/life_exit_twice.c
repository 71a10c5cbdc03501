/* Broken if this fails: a second call of llcl_exit, in an exit handler that the first one runs,
 * hangs, changes the exit code, or loses output that the handler has written before.
 * kind: alone
 * exit: 3
 */
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void again(void)
{
    fputs("written", stdout);
    llcl_exit(NULL, 4, 0);
}

int main(void)
{
    int ends[2], status = 0;
    char bytes[16] = "";
    pid_t child;
    if (pipe(ends) != 0 || (child = fork()) < 0)
        return 1;
    if (child == 0) {
        dup2(ends[1], 1);
        if (atexit(again) != 0)
            return 1;
        llcl_exit(NULL, 3, 0);
    }
    close(ends[1]);
    if (read(ends[0], bytes, sizeof bytes) != 7 || waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
