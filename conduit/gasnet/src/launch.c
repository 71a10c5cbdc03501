/* The bootstrap of ranks on one machine that a launcher other than llcl-run has started: Open
 * MPI's, or one that sets PMI_RANK (MPICH, Intel MPI). The ranks exchange files in a directory that
 * only this job uses, and remove it when all have met. */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 60000000000ull
#define SHARED "/dev/shm"
#define PREFIX "llcl-gasnet-"

static const struct {
    const char *rank, *size;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}};

static char directory[300];
static int rounds;
static llcl_bootstrap_t bootstrap = LLCL_BOOTSTRAP_INIT;

static void name_of(char *name, size_t room, int round, uint32_t rank) {
    snprintf(name, room, "%s/%d.%u", directory, round, rank);
}

static bool put_file(const void *mine, size_t size) {
    char name[400], part[410];
    name_of(name, sizeof name, rounds, bootstrap.rank);
    snprintf(part, sizeof part, "%s.part", name);
    int file = open(part, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    bool good = file >= 0 && write(file, mine, size) == (ssize_t)size;
    if (file >= 0) {
        close(file);
    }
    if (good && rename(part, name) == 0) { /* a reader finds the whole file or none */
        return true;
    }
    if (file >= 0) {
        unlink(part);
    }
    return false;
}

static bool get_file(uint32_t rank, void *place, size_t size, uint64_t until) {
    char name[400];
    int file;
    name_of(name, sizeof name, rounds, rank);
    while ((file = open(name, O_RDONLY | O_CLOEXEC)) < 0 && errno == ENOENT && gasnett_ticks_now() < until) {
        usleep(1000);
    }
    bool good = file >= 0 && read(file, place, size) == (ssize_t)size;
    if (file >= 0) {
        close(file);
    } else {
        fprintf(stderr, "gasnet (libllcl), rank %u: rank %u has not come to gex_Client_Init within %d s\n",
                bootstrap.rank, rank, (int)(PATIENCE_NS / 1000000000));
    }
    return good;
}

static int32_t allgather(void *data, const void *mine, size_t size, void *all) {
    uint64_t until = gasnett_ticks_now() + PATIENCE_NS;
    (void)data;
    rounds++;
    bool good = put_file(mine, size);
    for (uint32_t r = 0; good && r < bootstrap.size; r++) {
        good = get_file(r, (char *)all + r * size, size, until);
    }
    return good ? 0 : 1;
}

/* The start time of a process, from /proc; 0: there is no such process. The
 * launcher's start time is a part of the directory's name, and tells this job from an older one
 * whose launcher had the same process id. */
static unsigned long long began(long process) {
    char path[40], line[1000] = "";
    unsigned long long time = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "r");
    if (file) {
        char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        if (rest) {
            sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &time);
        }
        fclose(file);
    }
    return time;
}

/* Removes a directory of files, if it is this user's and nothing in it has changed for so long that
 * the ranks of a living job would have met, or would have given up. */
static void remove_old(const char *place) {
    struct stat found;
    int opened = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listed = opened < 0 ? NULL : fdopendir(opened);
    if (!listed) {
        if (opened >= 0) {
            close(opened);
        }
        return;
    }
    if (fstat(opened, &found) == 0 && found.st_uid == getuid() &&
        time(NULL) - found.st_mtime > (time_t)(2 * PATIENCE_NS / 1000000000)) {
        for (struct dirent *file; (file = readdir(listed));) {
            unlinkat(opened, file->d_name, 0);
        }
        rmdir(place);
    }
    closedir(listed);
}

/* Removes the directories of this user's jobs whose ranks were all killed before the job had begun,
 * and whose launchers have ended. */
static void remove_dead(void) {
    DIR *listed = opendir(SHARED);
    if (!listed) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(listed));) {
        char place[sizeof SHARED + sizeof entry->d_name];
        long user, launcher;
        unsigned long long time_began;
        if (sscanf(entry->d_name, PREFIX "%ld-%ld-%llu", &user, &launcher, &time_began) == 3 &&
            user == (long)getuid() && began(launcher) != time_began) {
            snprintf(place, sizeof place, SHARED "/%s", entry->d_name);
            remove_old(place);
        }
    }
    closedir(listed);
}

/* Makes the job's directory, which must belong to this user. All ranks of a job compute one
 * name. */
static bool make_directory(void) {
    const char *job_directory = getenv("PMIX_SERVER_TMPDIR"), *job_name = getenv("PMIX_NAMESPACE");
    struct stat found;
    if (job_directory && job_name && !strchr(job_name, '/')) {
        snprintf(directory, sizeof directory, "%s/" PREFIX "%s", job_directory, job_name);
    } else {
        remove_dead();
        snprintf(directory, sizeof directory, SHARED "/" PREFIX "%ld-%ld-%llu", (long)getuid(), (long)getppid(),
                 began(getppid()));
    }
    if (mkdir(directory, 0700) && errno != EEXIST) {
        return false;
    }
    return lstat(directory, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid();
}

const llcl_bootstrap_t *launch_begin(void) {
    if (getenv("LLCL_RANK") || getenv("LLCL_ALONE")) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = getenv(launchers[i].rank), *size = getenv(launchers[i].size);
        if (rank && size && atoi(size) > 1) {
            bootstrap.rank = (uint32_t)atoi(rank);
            bootstrap.size = (uint32_t)atoi(size);
            bootstrap.allgather = allgather;
            return make_directory() ? &bootstrap : NULL;
        }
    }
    return NULL;
}

static void remove_files(uint32_t rank) {
    char name[400];
    for (int round = 1; round <= rounds + 1; round++) {
        name_of(name, sizeof name, round, rank);
        unlink(name);
    }
}

/* Called when all ranks have read all files: the last rank's rmdir() succeeds. Or called when the
 * job cannot begin: then the files of the other ranks go too, since the launcher may end those
 * ranks before they call this. */
void launch_end(bool begun) {
    if (!*directory) {
        return;
    }
    for (uint32_t r = 0; r < bootstrap.size; r++) {
        if (r == bootstrap.rank || !begun) {
            remove_files(r);
        }
    }
    rmdir(directory);
    *directory = 0;
}
