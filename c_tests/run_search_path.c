/* Broken if this fails: a program that llcl-run starts does not look for the library beside
 * llcl-run, or looks there before the folders that its user has named.
 * kind: alone
 * modes: auto
 */
#include "test.h"

int main(void)
{
    const char *launcher = getenv("LLCL_RUN");
    char command[4096], line[4096] = "", *last, *end;
    FILE *output;
    if (!launcher)
        test_skip("LLCL_RUN is not set");
    CHECK(setenv("LD_LIBRARY_PATH", "/named/before", 1) == 0);
    CHECK(snprintf(command, sizeof command, "'%s' -n 1 sh -c 'echo $LD_LIBRARY_PATH'", launcher) <
          (int)sizeof command);
    output = popen(command, "r");
    CHECK(output != NULL && fgets(line, sizeof line, output) != NULL);
    CHECK(pclose(output) == 0);
    end = strchr(line, '\n');
    CHECK(end != NULL);
    *end = 0;
    CHECK(strncmp(line, "/named/before:", 14) == 0);
    last = strrchr(line, ':') + 1;
    CHECK(snprintf(command, sizeof command, "%s/libllcl.so", last) < (int)sizeof command);
    CHECK(access(command, R_OK) == 0);
    CHECK(strlen(llcl_version_string()) > 0);
    return 0;
}
