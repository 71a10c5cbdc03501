/* A peer whose process is stopped (SIGSTOP): it is alive, but executes nothing that needs it. */
#ifndef STOPPED_H
#define STOPPED_H
#include "shared.h"

#include <signal.h>

static inline char process_state(pid_t pid)
{
    char path[64], line[512], state = '?';
    FILE *file;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file) && strrchr(line, ')'))
        state = strrchr(line, ')')[2];
    if (file)
        fclose(file);
    return state;
}

static inline pid_t peer_stop(llcl_context_t *context, uint32_t peer)
{
    llcl_peer_info_t info = {0};
    int64_t end = now_ns() + 1000000000;
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, peer, &info));
    CHECK(info.process > 1 && info.process != (uint32_t)getpid());
    CHECK(kill((pid_t)info.process, SIGSTOP) == 0);
    while (process_state((pid_t)info.process) != 'T' && now_ns() < end)
        usleep(1000);
    CHECK(process_state((pid_t)info.process) == 'T');
    return (pid_t)info.process;
}

#endif
