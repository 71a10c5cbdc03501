/* The harness of the C tests: checks, and ranks as processes or as threads.
 *
 * A test is one file that answers one question. Its first comment says what is broken if the test
 * fails, and declares the set-ups for the runner (see c_tests/run). TEST_MAIN(fn) runs fn(context)
 * on each rank. A rank is a process under llcl-run, or, if TEST_THREADS=N is set, one of N threads
 * of this process. */
#ifndef TEST_H
#define TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <llcl.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TEST_SKIP_CODE 77
#define TEST_MOST_THREADS 65
#define TEST_PATIENCE_NS INT64_C(10000000000) /* a wait that takes longer counts as a hang */

static __thread uint32_t test_rank;
static __thread int test_finalized;

/* Ends the process without exit handlers: another thread may hold a lock that they need. */
static inline void test_end(int code)
{
    fflush(NULL);
    _exit(code);
}

static inline void test_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: rank %u: failed: %s\n", file, line, (unsigned)test_rank, what);
    fprintf(stderr, "    llcl_last_error: %s\n", llcl_last_error());
    test_end(1);
}

static inline void test_status(const char *file, int line, const char *what, const char *wanted,
                               llcl_status_t got, llcl_status_t expected)
{
    if (got == expected)
        return;
    fprintf(stderr, "%s:%d: rank %u: %s gave %d (%s), expected %s\n", file, line,
            (unsigned)test_rank, what, (int)got, llcl_status_string(got), wanted);
    fprintf(stderr, "    llcl_last_error: %s\n", llcl_last_error());
    test_end(1);
}

static inline void test_equal(const char *file, int line, const char *what, uint64_t got,
                              uint64_t expected)
{
    if (got == expected)
        return;
    fprintf(stderr, "%s:%d: rank %u: %s is %llu (0x%llx), expected %llu (0x%llx)\n", file, line,
            (unsigned)test_rank, what, (unsigned long long)got, (unsigned long long)got,
            (unsigned long long)expected, (unsigned long long)expected);
    test_end(1);
}

#define CHECK(expr)                                    \
    do {                                               \
        if (!(expr))                                   \
            test_fail(__FILE__, __LINE__, #expr);      \
    } while (0)
#define CHECK_STATUS(expr, expected) \
    test_status(__FILE__, __LINE__, #expr, #expected, (expr), (expected))
#define CHECK_OK(expr) CHECK_STATUS(expr, LLCL_OK)
#define CHECK_EQUAL(expr, expected) \
    test_equal(__FILE__, __LINE__, #expr, (uint64_t)(expr), (uint64_t)(expected))

/* Repeats a try function until it is accepted. Its last status must be LLCL_OK. */
#define POST(expr)                                                              \
    do {                                                                        \
        llcl_status_t post_;                                                    \
        while ((post_ = (expr)) > 0)                                            \
            sched_yield();                                                      \
        test_status(__FILE__, __LINE__, #expr, "LLCL_OK", post_, LLCL_OK);      \
    } while (0)

static inline void test_skip(const char *reason)
{
    printf("SKIP: %s\n", reason);
    test_end(TEST_SKIP_CODE);
}

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void sleep_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&span, &span) != 0 && errno == EINTR)
        ;
}

/* Accesses to words that callbacks and peers change. */
static inline uint64_t word_get(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void word_set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint64_t word_add(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

/* Waits without a call of the library: such a call would make progress, and so hide a lost wake-up.
 * Counts naps instead of the time, so that a process that gets no core waits longer. */
static inline int word_reaches(const uint64_t *word, uint64_t at_least, int64_t within_ns)
{
    int64_t naps = within_ns / 100000;
    unsigned rounds = 0;
    while (word_get(word) < at_least) {
        if (rounds++ < 2000)
            sched_yield();
        else if (naps-- > 0)
            usleep(100);
        else
            return word_get(word) >= at_least;
    }
    return 1;
}

#define AWAIT(word, at_least) CHECK(word_reaches((word), (at_least), TEST_PATIENCE_NS))

/* For tests of llcl_finalize. In all other tests the harness calls llcl_finalize. */
static inline llcl_status_t test_finalize(llcl_context_t *context)
{
    test_finalized = 1;
    return llcl_finalize(context);
}

static inline int test_in_threads(void)
{
    return getenv("TEST_THREADS") != NULL;
}

/* Limits the size of this process's files, and so its memory that peers map. */
static inline void test_limit_files(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Whether the test runs in this execution mode (LLCL_EXECUTION). */
static inline int test_mode_is(const char *name)
{
    const char *mode = getenv("LLCL_EXECUTION");
    return strcmp(mode ? mode : "auto", name) == 0;
}

struct test_plan {
    void (*run)(llcl_context_t *context);
    void (*configure)(llcl_config_t *config); /* may be NULL */
    llcl_world_t *world;                      /* NULL: the ranks are processes */
    uint32_t rank;
};

static inline void *test_one_rank(void *argument)
{
    struct test_plan *plan = argument;
    llcl_config_t config;
    llcl_context_t *context = NULL;
    test_rank = plan->rank;
    test_finalized = 0;
    CHECK_OK(llcl_config_default(&config));
    config.world = plan->world;
    config.rank = plan->rank;
    if (plan->configure)
        plan->configure(&config);
    CHECK_OK(llcl_init(&config, &context));
    test_rank = llcl_rank(context);
    plan->run(context);
    if (!test_finalized)
        CHECK_OK(llcl_finalize(context));
    return NULL;
}

static inline int test_threads(void (*run)(llcl_context_t *), void (*configure)(llcl_config_t *),
                               uint32_t ranks)
{
    pthread_t threads[TEST_MOST_THREADS];
    struct test_plan plans[TEST_MOST_THREADS];
    llcl_world_t *world = NULL;
    uint32_t r;
    CHECK(ranks >= 1 && ranks <= TEST_MOST_THREADS);
    CHECK_OK(llcl_world_create(ranks, &world));
    for (r = 0; r < ranks; r++) {
        plans[r].run = run;
        plans[r].configure = configure;
        plans[r].world = world;
        plans[r].rank = r;
        CHECK(pthread_create(&threads[r], NULL, test_one_rank, &plans[r]) == 0);
    }
    for (r = 0; r < ranks; r++)
        CHECK(pthread_join(threads[r], NULL) == 0);
    CHECK_OK(llcl_world_free(world));
    return 0;
}

static inline int test_main(void (*run)(llcl_context_t *), void (*configure)(llcl_config_t *))
{
    const char *threads = getenv("TEST_THREADS");
    struct test_plan plan = {0};
    if (threads)
        return test_threads(run, configure, (uint32_t)atoi(threads));
    plan.run = run;
    plan.configure = configure;
    test_one_rank(&plan);
    return 0;
}

#define TEST_MAIN_CONFIG(fn, configure) \
    int main(void)                      \
    {                                   \
        return test_main(fn, configure); \
    }
#define TEST_MAIN(fn) TEST_MAIN_CONFIG(fn, NULL)

/* The resident memory of this process. */
static inline long resident_kib(void)
{
    long pages = 0, size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Limits the number of descriptors of this process. */
static inline void descriptors_limit(rlim_t descriptors)
{
    struct rlimit limits;
    CHECK(getrlimit(RLIMIT_NOFILE, &limits) == 0);
    limits.rlim_cur = descriptors;
    CHECK(setrlimit(RLIMIT_NOFILE, &limits) == 0);
}

#endif
