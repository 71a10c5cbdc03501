/* Do the tools work in a source file, and in a process, that uses nothing else of GASNet? Locks and
 * thread keys are real if the file asks for them, whatever the mode of the library. Does a read
 * with a full fence behind it order a store before it and a load behind it? */
#undef GASNET_SEQ
#undef GASNET_PARSYNC
#undef GASNET_PAR
#define GASNETT_THREAD_SAFE 1
#include <gasnet_tools.h>

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define THREADS 4
#define ADDITIONS 10000

static gasnett_mutex_t lock = GASNETT_MUTEX_INITIALIZER;
static gasnett_atomic_t turns = gasnett_atomic_init(0);
static long sum;
static gasnett_rwlock_t shared = GASNETT_RWLOCK_INITIALIZER;
static long under_shared;
GASNETT_THREADKEY_DEFINE(own);

static void *add(void *mine) {
    gasnett_threadkey_set(own, mine);
    for (int i = 0; i < ADDITIONS; i++) {
        gasnett_mutex_lock(&lock);
        sum++;
        gasnett_mutex_unlock(&lock);
        gasnett_atomic_increment(&turns, GASNETT_ATOMIC_NONE);
        gasnett_rwlock_wrlock(&shared);
        under_shared++;
        gasnett_rwlock_unlock(&shared);
    }
    return gasnett_threadkey_get(own) == mine ? mine : NULL;
}

/* Readers share a lock, a writer does not. */
static int excludes(gasnett_rwlock_t *lock) {
    gasnett_rwlock_rdlock(lock);
    int shares = gasnett_rwlock_tryrdlock(lock) == 0 && gasnett_rwlock_trywrlock(lock) == EBUSY;
    gasnett_rwlock_unlock(lock);
    gasnett_rwlock_unlock(lock);
    int writes = gasnett_rwlock_trywrlock(lock) == 0 && gasnett_rwlock_tryrdlock(lock) == EBUSY;
    gasnett_rwlock_unlock(lock);
    gasnett_rwlock_wrlock(lock);
    writes = writes && gasnett_rwlock_tryrdlock(lock) == EBUSY;
    gasnett_rwlock_unlock(lock);
    return shares && writes;
}

#define ROUNDS 4000
/* On lines of their own. */
static struct { volatile int value; char rest[60]; } stored[2];
static struct { gasnett_atomic_t word; char rest[60]; } words[2], rounds_begun, rounds_ended;
static volatile int seen[2];
static int missed;

/* Waits until both threads have come to this place `round` times. */
static void meet(gasnett_atomic_t *arrivals, unsigned round) {
    gasnett_atomic_increment(arrivals, GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST);
    for (unsigned looks = 1; gasnett_atomic_read(arrivals, GASNETT_ATOMIC_ACQ) < 2 * round; looks++) {
        if (looks % 1000 == 0) {
            gasnett_sched_yield();
        }
    }
}

/* Each thread stores a word and then looks whether the other one has: not both may miss that. */
static void *store_and_look(void *second) {
    int own = second != NULL;
    for (int round = 1; round <= ROUNDS; round++) {
        meet(&rounds_begun.word, (unsigned)round);
        stored[own].value = round;
        gasnett_atomic_read(&words[own].word, GASNETT_ATOMIC_MB_POST);
        seen[own] = stored[!own].value;
        meet(&rounds_ended.word, (unsigned)round);
        missed += own == 0 && seen[0] < round && seen[1] < round;
    }
    return NULL;
}

static int read_fences(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, store_and_look, stored) != 0) {
        return 0;
    }
    store_and_look(NULL);
    pthread_join(other, NULL);
    return missed == 0;
}

static int traced;
static int trace(int fd) { return traced += fd; }

/* The client's function for backtraces takes the place of the conduit's. Limits of memory grow to
 * the system's, unless the environment forbids it. */
static int replaces_and_maximizes(void) {
    struct rlimit limit = {1 << 20, 1 << 21};
    gasnett_print_backtrace_ifenabled = trace;
    if (gasnett_print_backtrace_ifenabled(2) != 2 || setrlimit(RLIMIT_RSS, &limit)) {
        return 0;
    }
    gasnett_setenv("GASNET_MAXIMIZE_RLIMIT_RSS", "no");
    if (!gasnett_maximize_rlimits() || getrlimit(RLIMIT_RSS, &limit) || limit.rlim_cur != 1 << 20) {
        return 0;
    }
    gasnett_setenv("GASNET_MAXIMIZE_RLIMIT_RSS", "yes");
    return gasnett_maximize_rlimits() && !getrlimit(RLIMIT_RSS, &limit) && limit.rlim_cur == 1 << 21;
}

static volatile int frozen;
static void *thaw(void *nothing) {
    while (!frozen) {
        gasnett_sched_yield();
    }
    frozen = 0;
    return nothing;
}

/* Without GASNET_FREEZE_ON_ERROR the second call returns at once. */
static int freezes(void) {
    pthread_t debugger;
    if (pthread_create(&debugger, NULL, thaw, NULL) != 0) {
        return 0;
    }
    gasnett_freezeForDebuggerNow(&frozen, "frozen");
    gasnett_freezeForDebuggerErr();
    return pthread_join(debugger, NULL) == 0 && !frozen;
}

/* Whether the process's output leads nowhere. */
static int is_closed(void) {
    struct stat output, nowhere;
    return !fstat(1, &output) && !stat("/dev/null", &nowhere) && output.st_rdev == nowhere.st_rdev;
}

int main(void) {
    if (!read_fences()) {
        printf("tools_alone: both threads have missed the other's store in %d rounds\n", missed);
        return 1;
    }
    if (!replaces_and_maximizes() || !freezes()) {
        printf("tools_alone: a backtrace function, a limit or the flag for a debugger is not what it should be\n");
        return 1;
    }
    gasnett_rwlock_t made;
    gasnett_rwlock_init(&made);
    if (!excludes(&made) || !excludes(&shared)) {
        printf("tools_alone: a read-write lock does not do what it should\n");
        return 1;
    }
    gasnett_rwlock_destroy(&made);
    pthread_t threads[THREADS];
    int marks[THREADS], kept = 0;
    for (int t = 0; t < THREADS; t++) {
        if (pthread_create(&threads[t], NULL, add, &marks[t]) != 0) {
            return 1;
        }
    }
    for (int t = 0; t < THREADS; t++) {
        void *mine;
        kept += pthread_join(threads[t], &mine) == 0 && mine == &marks[t];
    }
    if (kept != THREADS || sum != THREADS * ADDITIONS || under_shared != sum ||
        gasnett_atomic_read(&turns, GASNETT_ATOMIC_NONE) != THREADS * ADDITIONS) {
        printf("tools_alone: %d keys, sum %ld, expected %d and %d\n", kept, sum, THREADS, THREADS * ADDITIONS);
        return 1;
    }
    gasnett_close_streams();
    return is_closed() ? 0 : 1;
}
