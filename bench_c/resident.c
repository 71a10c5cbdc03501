#include "resident.h"

#include "bench.h"

#include <string.h>

resident_t resident(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512], path[256];
    int backed = 0; /* the mapping at hand shows a file of a file system */
    resident_t sum = {0, 0};
    if (file == NULL)
        bench_die("resident: /proc/self/smaps cannot be read");
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long from, to;
        double kib;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
            path[0] = '\0';
            sscanf(line, "%*s %*s %*s %*s %*s %255s", path);
            backed = path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/dev/zero", 9) != 0;
        } else if (sscanf(line, "Rss: %lf", &kib) == 1) {
            sum.all += kib;
            sum.own += backed ? 0 : kib;
        } else if (backed && sscanf(line, "Anonymous: %lf", &kib) == 1) {
            sum.own += kib;
        }
    }
    fclose(file);
    return sum;
}
