/* The tools of GASNet: timers, fences, atomics, locks, environment, small helpers. They are a part
 * of the conduit's libraries; there is no library of the tools alone.
 *
 * A source file that uses the tools only need not define GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR.
 * It may define GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE, or GASNETT_LITE_MODE, which leaves out
 * what depends on threads. Without these it has threads if _REENTRANT is defined. */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H 1

/* GASNet's headers include some that nothing here needs, too, and clients use what they declare. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#if defined(GASNETT_LITE_MODE) + defined(GASNETT_THREAD_SAFE) + defined(GASNETT_THREAD_SINGLE) > 1
#error define one of GASNETT_LITE_MODE, GASNETT_THREAD_SAFE and GASNETT_THREAD_SINGLE only
#endif
#include "gasnet_config.h"
#include "gasnet_portable_platform.h"
#include "llcl-gasnet/annotations.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GASNETT_PAGESIZE GASNET_PAGESIZE
#define GASNETT_PAGESHIFT GASNET_PAGESHIFT
#define GASNETT_CACHE_LINE_BYTES 64
#define GASNETT_MAX_THREADS GASNET_MAX_THREADS
#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH
#define GASNETT_CONFIG_STRING GASNET_CONFIG_STRING
#if defined(__x86_64__)
#define GASNETT_SYSTEM_TUPLE "x86_64-linux-gnu"
#else
#define GASNETT_SYSTEM_TUPLE "linux-gnu"
#endif
#if defined(GASNETT_LITE_MODE)
#if defined(GASNET_SEQ) || defined(GASNET_PARSYNC) || defined(GASNET_PAR)
#error GASNETT_LITE_MODE is for source files that use the tools only
#endif
#undef GASNETT_LITE_MODE
#define GASNETT_LITE_MODE 1
#define GASNETT_THREAD_MODEL LITE
#elif defined(GASNET_PAR) || defined(GASNET_PARSYNC) || defined(GASNETT_THREAD_SAFE) || \
    (!defined(GASNET_SEQ) && !defined(GASNETT_THREAD_SINGLE) && defined(_REENTRANT))
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#define GASNETT_THREAD_MODEL PAR
#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#else
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#define GASNETT_THREAD_MODEL SEQ
#endif

/* Time: nanoseconds of the monotonic clock. */
typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX ((gasnett_tick_t)UINT64_MAX)
gasnett_tick_t gasnett_ticks_now(void);
#define gasnett_ticks_to_ns(ticks) ((uint64_t)(ticks))
#define gasnett_ticks_to_us(ticks) ((uint64_t)(ticks) / 1000u)
uint64_t gasnett_gettimeofday_us(void);
double gasnett_tick_granularityus(void);
double gasnett_tick_overheadus(void);
int gasnett_nsleep(uint64_t ns);
#define gasnett_sched_yield() sched_yield()
#ifndef PRIuSZ
#define PRIuSZ "zu"
#define PRIdSZ "zd"
#define PRIxSZ "zx"
#endif
#if defined(__x86_64__)
#define gasnett_spinloop_hint() __builtin_ia32_pause()
#else
#define gasnett_spinloop_hint() __asm__ __volatile__("" ::: "memory")
#endif

/* Fences. In a process of one thread the weak ones order the compiler only. */
#define gasnett_compiler_fence() __asm__ __volatile__("" ::: "memory")
#define gasnett_local_wmb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define gasnett_local_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasnett_local_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#if GASNETT_LITE_MODE
#elif GASNETT_THREAD_SAFE
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb() gasnett_local_mb()
#else
#define gasnett_weak_wmb() gasnett_compiler_fence()
#define gasnett_weak_rmb() gasnett_compiler_fence()
#define gasnett_weak_mb() gasnett_compiler_fence()
#endif

#if !GASNETT_LITE_MODE
#include "llcl-gasnet/atomics.h"
#include "llcl-gasnet/locks.h"
#endif

/* The environment of this process, which is the launcher's. */
char *gasnett_format_number(int64_t value, char *buffer, size_t size, int is_memory);
int64_t gasnett_parse_int(const char *text, uint64_t unit);
void gasnett_setenv(const char *name, const char *value);
void gasnett_unsetenv(const char *name);
char *gasnett_getenv(const char *name);
char *gasnett_getenv_withdefault(const char *name, const char *otherwise);
int gasnett_getenv_yesno_withdefault(const char *name, int otherwise);
int64_t gasnett_getenv_int_withdefault(const char *name, int64_t otherwise, uint64_t unit);
double gasnett_getenv_dbl_withdefault(const char *name, double otherwise);
int gasnett_verboseenv(void);
void gasnett_envint_display(const char *name, int64_t value, int is_default, int is_memory);
void gasnett_envstr_display(const char *name, const char *value, int is_default);
void gasnett_envdbl_display(const char *name, double value, int is_default);

/* The machine and the process. */
uint64_t gasnett_release_version(void);
const char *gasnett_release_version_str(void);
int gasnett_cpu_count(void);
uint64_t gasnett_getPhysMemSz(int fail_if_unknown);
const char *gasnett_gethostname(void);
const char *gasnett_exe_name(void);
const char *gasnett_performance_warning_str(void);
int gasnett_set_affinity(int cpu);
#define GASNETT_SET_AFFINITY_SUPPORT 1
#define GASNETT_SET_AFFINITY(cpu) gasnett_set_affinity(cpu)
int gasnett_maximize_rlimits(void);
int gasnett_maximize_rlimit(int resource, const char *name);
void *gasnett_mmap(uintptr_t size);
#define GASNETT_MMAP_SUPPORTED 1
void gasnett_flush_streams(void);
void gasnett_close_streams(void);
typedef void (*gasnett_sighandlerfn_t)(int);
gasnett_sighandlerfn_t gasnett_reghandler(int signal, gasnett_sighandlerfn_t handler);
void gexl_fatalerror(const char *function, const char *place, const char *format, ...) GASNETT_NORETURN
    __attribute__((format(printf, 3, 4)));
#define gasnett_fatalerror(...) gexl_fatalerror(__func__, __FILE__ ":" _STRINGIFY(__LINE__), __VA_ARGS__)
#define gasnett_fatalerror_nopos(...) gexl_fatalerror(NULL, NULL, __VA_ARGS__)
void gasnett_killmyprocess(int code) GASNETT_NORETURN;
#define GASNETT_CURRENT_FUNCTION __func__
/* A text that the caller frees: the function, and the file with the line. */
#define gasnett_current_loc gexl_location(__func__, __FILE__, __LINE__)
char *gexl_location(const char *function, const char *file, int line);
#define gasnett_isLittleEndian() PLATFORM_ARCH_LITTLE_ENDIAN

/* Backtraces: the client may define gasnett_backtrace_user. Without it nothing is printed. */
typedef struct {
    const char *name;
    int (*fnp)(int fd);
    int threadsupport;
} gasnett_backtrace_type_t;
#define gasnett_backtrace_init(program) ((void)(program))
int gasnett_print_backtrace(int fd);
/* Calls gasnett_print_backtrace if GASNET_BACKTRACE is set to yes. The conduit calls it at a fatal
 * error. The client may put another function here. */
extern int (*gasnett_print_backtrace_ifenabled)(int fd);
/* Sets the flag to 1 and waits until a debugger sets it to 0. The second one does so if
 * GASNET_FREEZE_ON_ERROR is set to yes. */
void gasnett_freezeForDebuggerNow(volatile int *flag, const char *name);
void gasnett_freezeForDebuggerErr(void);

/* Bytes. */
uint64_t gasnett_checksum(const void *data, int count);
uint64_t gasnett_count0s(const void *data, size_t size);
uint64_t gasnett_count0s_copy(void *to, const void *from, size_t size);
#define gasnett_count0s_uint32_t(value) gexl_zero_bytes((value), 4)
#define gasnett_count0s_uint64_t(value) gexl_zero_bytes((value), 8)
#define gasnett_count0s_uintptr_t(value) gexl_zero_bytes((value), sizeof(uintptr_t))
static inline int gexl_zero_bytes(uint64_t value, unsigned bytes) {
    int zeroes = 0;
    for (unsigned i = 0; i < bytes; i++) {
        zeroes += (value >> 8 * i & 255) == 0;
    }
    return zeroes;
}

/* There is no debugging heap: these are the C library's functions. */
typedef struct {
    uint64_t allocated_bytes, freed_bytes, live_bytes, live_bytes_max;
    uint64_t allocated_objects, freed_objects, live_objects, live_objects_max;
    uint64_t overhead_bytes;
} gasnett_heapstats_t;
int gasnett_getheapstats(gasnett_heapstats_t *stats);
#define gasnett_debug_malloc(size) malloc(size)
#define gasnett_debug_calloc(count, size) calloc((count), (size))
#define gasnett_debug_realloc(block, size) realloc((block), (size))
#define gasnett_debug_strdup(text) strdup(text)
#define gasnett_debug_strndup(text, size) strndup((text), (size))
#define gasnett_debug_free(block) free(block)
#define gasnett_debug_memcheck(block) ((void)(block))
#define gasnett_debug_memcheck_one() ((void)0)
#define gasnett_debug_memcheck_all() ((void)0)

/* Names of constants, for messages. Each function returns the number of bytes that the text needs,
 * and writes nothing to NULL. */
size_t gasnett_format_dt(char *buffer, uint32_t type);
size_t gasnett_format_op(char *buffer, uint32_t op);
size_t gasnett_format_ti(char *buffer, uint32_t mask);

/* There is no tracing. */
#define GASNETT_TRACE_ENABLED 0
#define GASNETT_STATS_ENABLED 0
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_GETSOURCELINE(file, line) ((void)(*(file) = NULL), (void)(*(line) = 0))
#define GASNETT_TRACE_FREEZESOURCELINE() ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)
#define GASNETT_TRACE_PRINTF gexl_no_trace
#define GASNETT_TRACE_PRINTF_FORCE gexl_no_trace
#define GASNETT_STATS_PRINTF gexl_no_trace
#define GASNETT_STATS_PRINTF_FORCE gexl_no_trace
static inline void gexl_no_trace(const char *format, ...) { (void)format; }
#define GASNETT_TRACE_GETMASK() ""
#define GASNETT_TRACE_SETMASK(mask) ((void)(mask))
#define GASNETT_STATS_GETMASK() ""
#define GASNETT_STATS_SETMASK(mask) ((void)(mask))
#define GASNETT_TRACE_GET_TRACELOCAL() 0
#define GASNETT_TRACE_SET_TRACELOCAL(on) ((void)(on))
#define GASNETT_STATS_DUMP(reset) ((void)(reset))

#include "llcl-gasnet/inner.h"

#ifdef __cplusplus
}
#endif
#endif
