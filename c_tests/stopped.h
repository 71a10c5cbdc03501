/* Stops the process of a peer by SIGSTOP: the peer is alive, but none of its threads runs. */
#ifndef STOPPED_H
#define STOPPED_H
#include "shared.h"

#include <dirent.h>
#include <signal.h>

/* Whether every thread of the process has stopped; they stop one after the other. */
static inline int process_stands(pid_t pid)
{
    char path[300], line[512];
    struct dirent *task;
    DIR *tasks;
    int stands = 1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    if (!tasks)
        return 0;
    while (stands && (task = readdir(tasks)) != NULL) {
        FILE *file;
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, task->d_name);
        file = fopen(path, "r");
        stands = file && fgets(line, sizeof line, file) && strrchr(line, ')') &&
                 strrchr(line, ')')[2] == 'T';
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return stands;
}

static inline pid_t peer_stop(llcl_context_t *context, uint32_t peer)
{
    llcl_peer_info_t info = {0};
    int64_t end = now_ns() + 1000000000;
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, peer, &info));
    CHECK(info.process > 1 && info.process != (uint32_t)getpid());
    CHECK(kill((pid_t)info.process, SIGSTOP) == 0);
    while (!process_stands((pid_t)info.process) && now_ns() < end)
        usleep(1000);
    CHECK(process_stands((pid_t)info.process));
    return (pid_t)info.process;
}

#endif
