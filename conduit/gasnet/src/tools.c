/* The tools: clock, machine, process, bytes, names of constants. */
#include "internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

gasnett_tick_t gasnett_ticks_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gasnett_release_version(void) {
    return GASNET_RELEASE_VERSION_MAJOR * UINT64_C(1000000) + GASNET_RELEASE_VERSION_MINOR * 10000 + GASNET_RELEASE_VERSION_PATCH;
}
const char *gasnett_release_version_str(void) { return "2025.8.0"; }

uint64_t gasnett_gettimeofday_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_usec;
}

/* Reads the clock 500 times: the smallest step between two readings, and the mean cost of one, in
 * microseconds. */
static void measure(double *step, double *cost) {
    gasnett_tick_t first = gasnett_ticks_now(), last = first, least = GASNETT_TICK_MAX;
    const int looks = 500;
    for (int i = 0; i < looks; i++) {
        gasnett_tick_t now = gasnett_ticks_now();
        least = now != last && now - last < least ? now - last : least;
        last = now;
    }
    *step = least == GASNETT_TICK_MAX ? 0.001 : (double)least / 1000;
    *cost = (double)(last - first) / looks / 1000;
}
double gasnett_tick_granularityus(void) {
    double step, cost;
    measure(&step, &cost);
    return step;
}
double gasnett_tick_overheadus(void) {
    double step, cost;
    measure(&step, &cost);
    return cost;
}

int gasnett_nsleep(uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return ns ? nanosleep(&time, NULL) : 0;
}

int gasnett_cpu_count(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN); /* those of the machine, whatever the process may use */
    return count > 0 ? (int)count : 1;
}

uint64_t gasnett_getPhysMemSz(int fail_if_unknown) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0) {
        if (fail_if_unknown) {
            fatal("the system does not tell how much memory it has");
        }
        return 0;
    }
    return (uint64_t)pages * (uint64_t)page;
}

const char *gasnett_gethostname(void) {
    static char name[256];
    if (gethostname(name, sizeof name - 1)) {
        strcpy(name, "unknown");
    }
    return name;
}

const char *gasnett_exe_name(void) {
    static char name[1024];
    ssize_t length = readlink("/proc/self/exe", name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    return name;
}

const char *gasnett_performance_warning_str(void) { return ""; }

int gasnett_set_affinity(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_CONF), &set);
    return sched_setaffinity(0, sizeof set, &set) ? 1 : 0;
}

int gasnett_maximize_rlimit(int resource, const char *name) {
    struct rlimit limit;
    char variable[80];
    snprintf(variable, sizeof variable, "GASNET_MAXIMIZE_%s", name);
    if (!gasnett_getenv_yesno_withdefault(variable, 1)) {
        return 1;
    }
    if (getrlimit((__rlimit_resource_t)resource, &limit)) {
        return 0;
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}
/* Processor time, and all that bounds memory. */
int gasnett_maximize_rlimits(void) {
    return gasnett_maximize_rlimit(RLIMIT_CPU, "RLIMIT_CPU") & gasnett_maximize_rlimit(RLIMIT_DATA, "RLIMIT_DATA") &
           gasnett_maximize_rlimit(RLIMIT_STACK, "RLIMIT_STACK") & gasnett_maximize_rlimit(RLIMIT_RSS, "RLIMIT_RSS") &
           gasnett_maximize_rlimit(RLIMIT_AS, "RLIMIT_AS");
}

void *gasnett_mmap(uintptr_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fatal("mmap of %zu bytes fails", (size_t)size);
    }
    return memory;
}

void gasnett_flush_streams(void) { fflush(NULL); }
/* Readers of the process's output see its end. The numbers 0 to 2 stay in use, since the conduit
 * may still print. */
void gasnett_close_streams(void) {
    fflush(NULL);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream = 0; nowhere >= 0 && stream <= 2; stream++) {
        dup2(nowhere, stream);
    }
    if (nowhere > 2) {
        close(nowhere);
    }
}
gasnett_sighandlerfn_t gasnett_reghandler(int number, gasnett_sighandlerfn_t handler) {
    return signal(number, handler);
}
/* A client may define this function; the conduit has no backtraces of its own. */
extern gasnett_backtrace_type_t gasnett_backtrace_user __attribute__((weak, visibility("default")));
int gasnett_print_backtrace(int fd) {
    return &gasnett_backtrace_user && gasnett_backtrace_user.fnp ? gasnett_backtrace_user.fnp(fd) : 1;
}
/* gasnett_getenv_yesno_withdefault() calls fatal() at any other word, and fatal() calls this. */
static bool is_yes(const char *name) {
    const char *value = getenv(name);
    return value && (*value == '1' || *value == 'y' || *value == 'Y');
}
static int print_backtrace_if_wanted(int fd) {
    return is_yes("GASNET_BACKTRACE") ? gasnett_print_backtrace(fd) : 1;
}
int (*gasnett_print_backtrace_ifenabled)(int fd) = print_backtrace_if_wanted;

void gasnett_freezeForDebuggerNow(volatile int *flag, const char *name) {
    fprintf(stderr, "gasnet (libllcl), rank %u: process %d on %s waits for a debugger: set %s to 0\n", job.rank,
            (int)getpid(), gasnett_gethostname(), name);
    for (*flag = 1; *flag;) {
        gasnett_nsleep(100000000);
    }
}
void gasnett_freezeForDebuggerErr(void) {
    static volatile int frozen;
    if (is_yes("GASNET_FREEZE_ON_ERROR")) {
        gasnett_freezeForDebuggerNow(&frozen, "frozen (in gasnett_freezeForDebuggerErr)");
    }
}
void gasnett_killmyprocess(int code) { _exit(code); }

void gexl_fatalerror(const char *function, const char *place, const char *format, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (place) {
        fatal("%s (%s at %s)", text, function, place);
    }
    fatal("%s", text);
}

char *gexl_location(const char *function, const char *file, int line) {
    char *text;
    if (asprintf(&text, "%s at %s:%d", function, file, line) < 0) {
        fatal("no memory for a place in %s", file);
    }
    return text;
}

/* Fletcher's checksum with two sums of 32 bits, so that the order of the bytes counts. */
uint64_t gasnett_checksum(const void *data, int count) {
    const unsigned char *bytes = data;
    uint64_t low = 1, high = 0;
    for (int i = 0; i < count; i++) {
        low = (low + bytes[i]) % 0xffffffffu;
        high = (high + low) % 0xffffffffu;
    }
    return high << 32 | low;
}

uint64_t gasnett_count0s(const void *data, size_t size) {
    const unsigned char *bytes = data;
    uint64_t zeroes = 0;
    for (size_t i = 0; i < size; i++) {
        zeroes += bytes[i] == 0;
    }
    return zeroes;
}
uint64_t gasnett_count0s_copy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
    return gasnett_count0s(to, size);
}

int gasnett_getheapstats(gasnett_heapstats_t *stats) {
    memset(stats, 0, sizeof *stats);
    return 1; /* not collected */
}

/* A bit and its name. format_bits() joins the names by '|'. */
struct bit {
    uint32_t value;
    const char *name;
};

static size_t format_bits(char *buffer, uint32_t set, const struct bit *bits, size_t count) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (set & bits[i].value) {
            const char *mark = length ? "|" : "";
            if (buffer) {
                sprintf(buffer + length, "%s%s", mark, bits[i].name);
            }
            length += strlen(mark) + strlen(bits[i].name);
        }
    }
    if (buffer) {
        buffer[length] = 0;
    }
    return length + 1;
}
#define BIT(name) {name, #name}
#define FORMAT(function, ...)                                                             \
    size_t function(char *buffer, uint32_t set) {                                         \
        static const struct bit bits[] = {__VA_ARGS__};                                   \
        return format_bits(buffer, set, bits, sizeof bits / sizeof *bits);          \
    }
FORMAT(gasnett_format_dt, BIT(GEX_DT_I32), BIT(GEX_DT_U32), BIT(GEX_DT_I64), BIT(GEX_DT_U64), BIT(GEX_DT_FLT),
       BIT(GEX_DT_DBL), BIT(GEX_DT_USER))
FORMAT(gasnett_format_op, BIT(GEX_OP_AND), BIT(GEX_OP_OR), BIT(GEX_OP_XOR), BIT(GEX_OP_ADD), BIT(GEX_OP_SUB),
       BIT(GEX_OP_MULT), BIT(GEX_OP_MIN), BIT(GEX_OP_MAX), BIT(GEX_OP_INC), BIT(GEX_OP_DEC), BIT(GEX_OP_SET),
       BIT(GEX_OP_CAS), BIT(GEX_OP_FAND), BIT(GEX_OP_FOR), BIT(GEX_OP_FXOR), BIT(GEX_OP_FADD), BIT(GEX_OP_FSUB),
       BIT(GEX_OP_FMULT), BIT(GEX_OP_FMIN), BIT(GEX_OP_FMAX), BIT(GEX_OP_FINC), BIT(GEX_OP_FDEC), BIT(GEX_OP_SWAP),
       BIT(GEX_OP_FCAS), BIT(GEX_OP_GET), BIT(GEX_OP_USER), BIT(GEX_OP_USER_NC))
FORMAT(gasnett_format_ti, BIT(GEX_TI_SRCRANK), BIT(GEX_TI_ENTRY), BIT(GEX_TI_IS_REQ), BIT(GEX_TI_IS_LONG),
       BIT(GEX_TI_EP))
