/* Do the tools work in a source file, and in a process, that uses nothing else of GASNet? Locks and
 * thread keys are real if the file asks for them, whatever the mode of the library. */
#undef GASNET_SEQ
#undef GASNET_PARSYNC
#undef GASNET_PAR
#define GASNETT_THREAD_SAFE 1
#include <gasnet_tools.h>

#include <stdio.h>

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

int main(void) {
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
    return 0;
}
