/* Broken if this fails: a wrong or partial environment silently makes worlds of one, instead of a
 * refusal that names the variable; or a launcher that has gone is not reported.
 * kind: alone
 * modes: auto
 */
#include "test.h"

#include <sys/socket.h>
#include <sys/wait.h>

/* Runs llcl_init in a child whose environment has the given settings ("NAME=value", NULL at the
 * end). */
static void expect(llcl_status_t expected, const char *const *settings)
{
    int state = 0;
    pid_t child;
    const char *named = settings[0];
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        llcl_context_t *context = NULL;
        llcl_status_t status;
        for (; *settings; settings++)
            CHECK(putenv((char *)(uintptr_t)*settings) == 0);
        status = llcl_init(NULL, &context);
        CHECK_STATUS(status, expected);
        CHECK(context == NULL);
        if (expected == LLCL_ERR_INVALID)
            CHECK(strstr(llcl_last_error(), "LLCL_") != NULL);
        test_end(0);
    }
    CHECK(waitpid(child, &state, 0) == child);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        fprintf(stderr, "the settings were: %s ...\n", named);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

#define EXPECT(status, ...)                                  \
    do {                                                     \
        const char *const settings_[] = {__VA_ARGS__, NULL}; \
        expect(status, settings_);                           \
    } while (0)

/* Other launchers that have started several ranks. */
static void another_launcher(void)
{
    int state = 0;
    pid_t child;
    EXPECT(LLCL_ERR_INVALID, "PMI_SIZE=2");
    EXPECT(LLCL_ERR_INVALID, "PMIX_RANK=1");
    EXPECT(LLCL_ERR_INVALID, "OMPI_COMM_WORLD_SIZE=4");
    EXPECT(LLCL_ERR_INVALID, "SLURM_STEP_NUM_TASKS=3", "LLCL_ALONE=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_ALONE=yes");
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        llcl_context_t *context = NULL;
        CHECK(setenv("OMPI_COMM_WORLD_SIZE", "4", 1) == 0 && setenv("LLCL_ALONE", "1", 1) == 0);
        CHECK_OK(llcl_init(NULL, &context));
        CHECK_EQUAL(llcl_size(context), 1);
        CHECK_OK(llcl_finalize(context));
        CHECK(setenv("OMPI_COMM_WORLD_SIZE", "1", 1) == 0 && unsetenv("LLCL_ALONE") == 0);
        CHECK_OK(llcl_init(NULL, &context));
        CHECK_OK(llcl_finalize(context));
        test_end(0);
    }
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

static void hub_that_has_gone(void)
{
    int ends[2];
    char fd[32];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    CHECK(close(ends[1]) == 0);
    snprintf(fd, sizeof fd, "LLCL_HUB_FD=%d", ends[0]);
    EXPECT(LLCL_ERR_SYSTEM, "LLCL_RANK=0", "LLCL_SIZE=2", fd);
    CHECK(close(ends[0]) == 0);
}

/* The hub's process has ended, and another process holds its end of the connection: here the rank
 * itself. */
static void hub_whose_process_has_ended(void)
{
    int answer[2], ends[2], status = 0;
    pid_t hub;
    CHECK(pipe(answer) == 0);
    fflush(NULL);
    hub = fork();
    CHECK(hub >= 0);
    if (hub == 0) {
        pid_t maker = getpid();
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
        if (fork() == 0) {
            llcl_context_t *context = NULL;
            char fd[32];
            snprintf(fd, sizeof fd, "%d", ends[0]);
            setenv("LLCL_RANK", "0", 1);
            setenv("LLCL_SIZE", "2", 1);
            setenv("LLCL_HUB_FD", fd, 1);
            /* Until the test has waited for it. */
            while (kill(maker, 0) == 0)
                usleep(1000);
            alarm(20);
            status = llcl_init(NULL, &context);
            CHECK(write(answer[1], &status, sizeof status) == sizeof status);
        }
        _exit(0);
    }
    CHECK(waitpid(hub, NULL, 0) == hub);
    CHECK(close(answer[1]) == 0);
    CHECK(read(answer[0], &status, sizeof status) == sizeof status);
    CHECK_STATUS(status, LLCL_ERR_SYSTEM);
    CHECK(close(answer[0]) == 0);
}

static void hub_of_another_kind(void)
{
    int ends[2];
    char fd[32];
    CHECK(pipe(ends) == 0);
    snprintf(fd, sizeof fd, "LLCL_HUB_FD=%d", ends[0]);
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=2", fd);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    snprintf(fd, sizeof fd, "LLCL_HUB_FD=%d", ends[0]);
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=2", fd);
}

int main(void)
{
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_SIZE=2");
    EXPECT(LLCL_ERR_INVALID, "LLCL_HUB_FD=3");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=2");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_HUB_FD=3");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=2", "LLCL_SIZE=2", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=", "LLCL_SIZE=2", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=-1", "LLCL_SIZE=2", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=zero", "LLCL_SIZE=2", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=99999999999", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=0", "LLCL_HUB_FD=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_RANK=0", "LLCL_SIZE=1", "LLCL_HUB_FD=987");
    hub_of_another_kind();
    hub_that_has_gone();
    hub_whose_process_has_ended();
    another_launcher();

    EXPECT(LLCL_ERR_INVALID, "LLCL_EXECUTION=fast");
    EXPECT(LLCL_ERR_INVALID, "LLCL_QUEUE_ENTRIES=7");
    EXPECT(LLCL_ERR_INVALID, "LLCL_QUEUE_ENTRIES=many");
    EXPECT(LLCL_ERR_INVALID, "LLCL_IN_FLIGHT=100");
    EXPECT(LLCL_ERR_INVALID, "LLCL_REGIONS=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_CMA=perhaps");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_POLICY=greedy");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_POLICY=1");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_SLOTS=0");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_SLOTS=500");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_MEDIUM=4000");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_MEDIUM=-64");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_SHARES=32");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_REQUESTS=63");
    EXPECT(LLCL_ERR_INVALID, "LLCL_AM_HANDLERS=many");
    return 0;
}
