#include "resident.h"

#include "bench.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

resident_t resident(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512], path[256];
    int backed = 0; /* the present mapping is one of a file on a file system */
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

static double lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    double lines = 0;
    int byte;
    if (file == NULL)
        bench_die("usage: cannot read %s", path);
    while ((byte = fgetc(file)) != EOF)
        lines += byte == '\n';
    fclose(file);
    return lines;
}

static double entries_of(const char *path)
{
    DIR *folder = opendir(path);
    double entries = 0;
    if (folder == NULL)
        bench_die("usage: cannot read %s", path);
    while (readdir(folder) != NULL)
        entries++;
    closedir(folder);
    return entries;
}

/* "VmSize:" and the like of /proc/self/status, KiB. */
static double status_of(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double value = 0;
    if (file == NULL)
        bench_die("usage: cannot read /proc/self/status");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtod(line + strlen(name), NULL);
    fclose(file);
    return value;
}

usage_t usage(void)
{
    double tables = status_of("VmPTE:");
    usage_t now = {entries_of("/proc/self/fd"), lines_of("/proc/self/maps"), status_of("VmSize:"),
                   resident().own + tables, status_of("RssAnon:") + tables};
    return now;
}
