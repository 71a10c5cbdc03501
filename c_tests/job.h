/* For tests of llcl-run, which are of the kind "alone": such a test starts its own program as ranks
 * under llcl-run. */
#ifndef JOB_H
#define JOB_H
#include "test.h"
#include <sys/wait.h>

struct end {
    int code;
    char said[8192];
};

/* Runs a program under llcl-run, with two arguments. Returns the job's exit code and its output. */
static inline struct end job(const char *options, const char *program, const char *what,
                             const char *more)
{
    struct end end = {0, ""};
    char command[4096];
    size_t got;
    FILE *from;
    int status;
    snprintf(command, sizeof command, "%s --timeout 20 %s %s %s %s 2>&1", getenv("LLCL_RUN"),
             options, program, what, more);
    from = popen(command, "r");
    CHECK(from != NULL);
    got = fread(end.said, 1, sizeof end.said - 1, from);
    end.said[got] = 0;
    status = pclose(from);
    CHECK(WIFEXITED(status));
    end.code = WEXITSTATUS(status);
    return end;
}

#define EXPECT(end, wanted, text)                                                           \
    do {                                                                                    \
        if ((end).code != (wanted) || !strstr((end).said, (text))) {                        \
            fprintf(stderr, "exit code %d, expected %d; expected \"%s\" in:\n%s", (end).code, \
                    (wanted), (text), (end).said);                                          \
            test_fail(__FILE__, __LINE__, "what llcl-run did and said");                    \
        }                                                                                   \
    } while (0)

#endif
