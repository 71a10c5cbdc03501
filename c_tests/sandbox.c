/* Broken if this fails: where a sandbox's filter refuses a system call that the library uses
 * (process_vm_readv, process_vm_writev or both, membarrier, and some more), or the kernel does not
 * let ranks copy because they may not trace each other, something hangs or goes wrong instead of
 * going another way; llcl_query_peer does not tell which way, and the errno; or llcl-run does not
 * say which call it lacks. Or where Yama's ptrace_scope is 1, and only there, ranks do not permit
 * each other to copy.
 * kind: alone
 * modes: auto direct
 * timeout: 60
 */
#include "job.h"
#include "shared.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define SIZE 100000u
#define NOBODY 65534

enum { KERNEL = LLCL_ACCESS_KERNEL, MESSAGE = LLCL_ACCESS_MESSAGE, FUTEX_WAITV = 449 };

/* What is refused to the ranks, and what llcl_query_peer is to say. */
static const struct scene {
    const char *name;
    int calls[3], error;
    int user, dumpable; /* not root; may be traced by others of the same user */
    uint32_t reads, writes;
    int read_error, write_error;
} scenes[] = {
    {"writes", {SYS_process_vm_writev, 0, 0}, EPERM, 0, 1, KERNEL, MESSAGE, 0, EPERM},
    {"reads", {SYS_process_vm_readv, 0, 0}, ENOSYS, 0, 1, MESSAGE, MESSAGE, ENOSYS, ENOSYS},
    {"copies", {SYS_process_vm_readv, SYS_process_vm_writev, 0}, EPERM, 0, 1, MESSAGE, MESSAGE, EPERM, EPERM},
    {"fences", {SYS_membarrier, 0, 0}, ENOSYS, 0, 1, KERNEL, KERNEL, 0, 0},
    {"others", {SYS_pidfd_open, FUTEX_WAITV, SYS_fallocate}, EPERM, 0, 1, KERNEL, KERNEL, 0, 0},
    {"untraceable", {0, 0, 0}, 0, 1, 0, MESSAGE, MESSAGE, EPERM, EPERM},
    {"scope", {0, 0, 0}, 0, 1, 1, KERNEL, KERNEL, 0, 0},
};
#define SCENES (sizeof scenes / sizeof scenes[0])

static const struct scene *scene;
static uint64_t permissions;

/* The library calls this one: the program's own function comes before that of the C library. */
int prctl(int option, ...)
{
    unsigned long arguments[4];
    va_list rest;
    int i;
    va_start(rest, option);
    for (i = 0; i < 4; i++)
        arguments[i] = va_arg(rest, unsigned long);
    va_end(rest);
    if (option == PR_SET_PTRACER)
        word_add(&permissions, arguments[0] == PR_SET_PTRACER_ANY ? 1 : 100);
    return (int)syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/* From here on the kernel answers `error` to this process where it makes the call, and to its
 * children. */
static int refuse(int call, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0 &&
           prctl(PR_SET_SECCOMP, (unsigned long)SECCOMP_MODE_FILTER, &filter, 0UL, 0UL) == 0;
}

static int yama(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
    int scope = file ? fgetc(file) - '0' : 0;
    if (file)
        fclose(file);
    return scope;
}

/* In this process, if it may do that, Yama's setting reads as 1. Where it is so in truth, the ranks
 * of this scene, which are neither root nor each other's ancestors, can copy only because they have
 * permitted it. */
static void pretend_scope(void)
{
    FILE *file;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL) != 0)
        return;
    CHECK(mkdir("/proc/sys/kernel/yama", 0755) == 0);
    file = fopen("/proc/sys/kernel/yama/ptrace_scope", "w");
    CHECK(file != NULL && fputs("1\n", file) >= 0 && fclose(file) == 0);
}

static void write_and_read(llcl_context_t *context, const struct shared *target, uint32_t flags)
{
    static unsigned char bytes[SIZE];
    llcl_write_signal_params_t write = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    uint32_t peer = 1 - llcl_rank(context), seed = flags + peer;
    pattern_fill(bytes, SIZE, seed);
    write.peer = read.peer = peer;
    write.flags = flags;
    write.source = read.destination = llcl_local_address(bytes);
    write.destination = read.source = remote_at(target, peer, 0);
    write.size = read.size = SIZE;
    write.signal = remote_at(target, peer, SIZE + 96);
    write.signal_op = LLCL_SIGNAL_ADD;
    write.signal_value = 1;
    POST(llcl_try_write_signal_async(context, &write));
    CHECK_OK(llcl_flush(context, peer));
    memset(bytes, 0, SIZE);
    CHECK_OK(llcl_read(context, &read));
    CHECK(pattern_holds(bytes, SIZE, seed));
}

/* The ranks take turns, so each sleeps while the other one copies. */
static void copy_in_turn(llcl_context_t *context, int kind, uint32_t flags)
{
    struct shared target;
    uint64_t *signal;
    share(context, kind, SIZE + 128, &target);
    signal = (uint64_t *)(void *)(target.bytes + SIZE + 96);
    if (llcl_rank(context) == 0)
        write_and_read(context, &target, flags);
    CHECK_OK(llcl_wait_word(context, signal, 1, -1));
    if (llcl_rank(context) == 1)
        write_and_read(context, &target, flags);
    share_end(context, &target);
}

static void run(llcl_context_t *context)
{
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    /* Above 1 Yama asks for a capability. */
    int kind, turn, refused = scene->reads == KERNEL && geteuid() != 0 && yama() > 1;
    CHECK_EQUAL(word_get(&permissions), yama() == 1);
    CHECK_OK(llcl_query_peer(context, 1 - llcl_rank(context), &info));
    CHECK_EQUAL(info.registered_access, refused ? MESSAGE : scene->reads);
    CHECK_EQUAL(info.registered_writes, refused ? MESSAGE : scene->writes);
    CHECK_EQUAL(info.kernel_error, refused ? EPERM : scene->read_error);
    CHECK_EQUAL(info.kernel_write_error, refused ? EPERM : scene->write_error);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        copy_in_turn(context, kind, 0);
        copy_in_turn(context, kind, LLCL_FLAG_DEFER);
    }
    for (turn = 0; turn < 100; turn++)
        CHECK_OK(llcl_barrier(context));
}

static int rank_in(const char *name)
{
    int i;
    for (scene = scenes; strcmp(scene->name, name) != 0; scene++)
        ;
    for (i = 0; i < 3; i++)
        CHECK(scene->calls[i] == 0 || refuse(scene->calls[i], scene->error));
    if (strcmp(name, "scope") == 0)
        pretend_scope();
    if (scene->user && geteuid() == 0)
        CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, (unsigned long)scene->dumpable, 0UL, 0UL, 0UL) == 0);
    return test_main(run, NULL);
}

/* What llcl-info says of registered memory where a call is refused to it; 0: none is. */
static void check_info(const char *self, const char *launcher, const char *call, const char *text)
{
    char command[8192], said[8192];
    size_t got;
    FILE *from;
    snprintf(command, sizeof command, "%s run %s $(dirname %s)/llcl-info 2>&1", self, call, launcher);
    from = popen(command, "r");
    CHECK(from != NULL);
    got = fread(said, 1, sizeof said - 1, from);
    said[got] = 0;
    if (pclose(from) != 0 || !strstr(said, text)) {
        fprintf(stderr, "expected \"%s\" in:\n%s", text, said);
        test_fail(__FILE__, __LINE__, "what llcl-info says");
    }
}

static int can_refuse(void)
{
    int state;
    pid_t child = fork();
    if (child == 0)
        _exit(refuse(SYS_membarrier, ENOSYS) ? 0 : 1);
    CHECK(child > 0 && waitpid(child, &state, 0) == child);
    return state == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        int call;
        const char *text;
    } infos[] = {
        {0, " process_vm_readv, process_vm_writev;"},
        {SYS_process_vm_readv, " messages to the owner: process_vm_readv: "},
        {SYS_process_vm_writev, " process_vm_readv; writes by messages: process_vm_writev: "},
    };
    struct end end;
    char launcher[4096], call[16];
    size_t i;
    if (argc > 3 && strcmp(argv[1], "run") == 0) {
        CHECK(atoi(argv[2]) == 0 || refuse(atoi(argv[2]), ENOSYS));
        execv(argv[3], argv + 3);
        test_fail(__FILE__, __LINE__, "execv");
    }
    if (argc > 1)
        return rank_in(argv[1]);
    if (!can_refuse())
        test_skip("this kernel has no filters of system calls, or does not let us set one");
    for (i = 0; i < SCENES; i++) {
        end = job("-n 2", argv[0], scenes[i].name, "");
        EXPECT(end, 0, "");
    }
    for (i = geteuid() != 0 && yama() > 1; i < sizeof infos / sizeof infos[0]; i++) {
        snprintf(call, sizeof call, "%d", infos[i].call);
        check_info(argv[0], getenv("LLCL_RUN"), call, infos[i].text);
    }
    snprintf(launcher, sizeof launcher, "%s run %d %s", argv[0], SYS_pidfd_open, getenv("LLCL_RUN"));
    setenv("LLCL_RUN", launcher, 1);
    end = job("-n 2", argv[0], "fences", "");
    EXPECT(end, 1, "llcl-run: pidfd_open: ");
    return 0;
}
