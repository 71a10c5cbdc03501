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
GASNETT_THREADKEY_DEFINE(own);

static void *add(void *mine) {
    gasnett_threadkey_set(own, mine);
    for (int i = 0; i < ADDITIONS; i++) {
        gasnett_mutex_lock(&lock);
        sum++;
        gasnett_mutex_unlock(&lock);
        gasnett_atomic_increment(&turns, GASNETT_ATOMIC_NONE);
    }
    return gasnett_threadkey_get(own) == mine ? mine : NULL;
}

int main(void) {
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
    if (kept != THREADS || sum != THREADS * ADDITIONS ||
        gasnett_atomic_read(&turns, GASNETT_ATOMIC_NONE) != THREADS * ADDITIONS) {
        printf("tools_alone: %d keys, sum %ld, expected %d and %d\n", kept, sum, THREADS, THREADS * ADDITIONS);
        return 1;
    }
    return 0;
}
