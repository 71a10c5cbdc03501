/* Broken if this fails: llcl-run --bind core leaves the library's own threads on the processor of
 * their rank though there is another, or does not keep the rank on its own; LLCL_PROGRESS_CPUS is
 * ignored, overwritten by llcl-run, or a list that is none is accepted.
 * kind: alone
 * modes: auto offload */
#include "job.h"
#include <dirent.h>

static int run_on_one(const cpu_set_t *set, int *which)
{
    int cpu;
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set))
            *which = cpu;
    return CPU_COUNT(set) == 1;
}

/* Where the thread of this process runs whose name this is. It exists as soon as llcl_init has
 * returned. */
static void mask_of(const char *name, cpu_set_t *set)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int found = 0;
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)) != NULL) {
        char path[300], said[32] = "";
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(said, sizeof said, file) != NULL && strcmp(strtok(said, "\n"), name) == 0) {
            CHECK(sched_getaffinity(atoi(entry->d_name), sizeof *set, set) == 0);
            found = 1;
        }
        fclose(file);
    }
    closedir(tasks);
    CHECK(found);
}

static void as_rank(const char *expected)
{
    llcl_context_t *context;
    cpu_set_t mine, theirs;
    int own = -1, other = -1;
    CHECK_OK(llcl_init(NULL, &context));
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    mask_of("llcl-progress", &theirs);
    CHECK(run_on_one(&mine, &own));
    if (strcmp(expected, "others") == 0)
        CHECK(CPU_COUNT(&theirs) >= 1 && !CPU_ISSET(own, &theirs));
    else
        CHECK(run_on_one(&theirs, &other) && other == atoi(expected));
    CHECK_OK(llcl_finalize(context));
}

static void refused(const char *list)
{
    llcl_context_t *context = NULL;
    CHECK(setenv("LLCL_PROGRESS_CPUS", list, 1) == 0);
    CHECK_STATUS(llcl_init(NULL, &context), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "LLCL_PROGRESS_CPUS") != NULL);
    CHECK(unsetenv("LLCL_PROGRESS_CPUS") == 0);
}

int main(int argc, char **argv)
{
    struct end end;
    cpu_set_t mine;
    char last[16] = "";
    int cpu, cpus = 0;
    if (argc > 1) {
        as_rank(argv[1]);
        return 0;
    }
    refused("none");
    refused("1-0");
    refused("1023"); /* no machine of this test has so many */
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mine) && ++cpus <= 2)
            snprintf(last, sizeof last, "%d", cpu);
    if (cpus < 2)
        test_skip("one processor: there is no other");
    end = job("-n 1 --bind core", argv[0], "others", "");
    EXPECT(end, 0, "");
    end = job("-n 2 --bind core", argv[0], "others", "");
    EXPECT(end, 0, "");
    /* More ranks than processors: each has others beside its own. */
    end = job("-n 5 --bind core", argv[0], "others", "");
    EXPECT(end, 0, "");
    CHECK(setenv("LLCL_PROGRESS_CPUS", last, 1) == 0);
    end = job("-n 2 --bind core", argv[0], last, "");
    EXPECT(end, 0, "");
    return 0;
}
