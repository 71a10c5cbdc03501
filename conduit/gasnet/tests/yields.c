/* Does a waiting rank yield its core as often as the first argument says, in 4,096 polls? That
 * depends on the cores that the ranks of its machine may use. With a second argument the system
 * does not tell these cores, as on a machine with more cores than a cpu_set_t has bits. */
#include "t.h"
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>

static __thread int counts;
static unsigned yields;

/* In place of the C library's functions, for the conduit and libllcl. */
int sched_yield(void) {
    yields += counts;
    return 0;
}

static int many_cores;
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *cores) {
    long bytes = many_cores ? -1 : syscall(SYS_sched_getaffinity, process, size, cores);
    if (bytes < 0) {
        errno = EINVAL;
        return -1;
    }
    memset((char *)cores + bytes, 0, size - (size_t)bytes);
    return 0;
}

int main(int argc, char **argv) {
    unsigned rounds = 0, expected;
    CHECK(argc >= 2);
    many_cores = argc > 2;
    expected = (unsigned)atoi(argv[1]);
    begin(NULL, 0);
    barrier();
    counts = 1;
    while (rounds < 4096) {
        gexl_pause(&rounds);
    }
    counts = 0;
    /* A poll of libllcl yields in a few cases, too. */
    CHECK(yields >= expected);
    CHECK(yields < expected + 16);
    end();
}
