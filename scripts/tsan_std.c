/* Tells ThreadSanitizer how the precompiled Rust standard library, which is not instrumented,
 * orders memory. scripts/build-sanitized passes the mangled names and links each function below in
 * front of the real one (ld --wrap). Rust passes these arguments as C does: pointers, integers, a
 * Duration as its two fields. */
#include <stdbool.h>
#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define JOIN_(a, b) a##b
#define REAL(name) JOIN_(__real_, name)
#define WRAP(name) JOIN_(__wrap_, name)

/* Locks: unlocking is inlined, hence instrumented; taking a contended lock is not. */
#define LOCK(name)                     \
    void REAL(name)(void *lock);       \
    void WRAP(name)(void *lock);       \
    void WRAP(name)(void *lock)        \
    {                                  \
        REAL(name)(lock);              \
        __tsan_acquire(lock);          \
    }
#ifdef MUTEX_LOCK
LOCK(MUTEX_LOCK)
#endif
#ifdef RWLOCK_READ
LOCK(RWLOCK_READ)
#endif
#ifdef RWLOCK_WRITE
LOCK(RWLOCK_WRITE)
#endif

/* Condition variables unlock and lock the mutex inside. */
#ifdef CONDVAR_WAIT
void REAL(CONDVAR_WAIT)(void *condvar, void *mutex);
void WRAP(CONDVAR_WAIT)(void *condvar, void *mutex);
void WRAP(CONDVAR_WAIT)(void *condvar, void *mutex)
{
    __tsan_release(mutex);
    REAL(CONDVAR_WAIT)(condvar, mutex);
    __tsan_acquire(mutex);
}
#endif
#ifdef CONDVAR_WAIT_TIMEOUT
bool REAL(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds);
bool WRAP(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds);
bool WRAP(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds)
{
    __tsan_release(mutex);
    bool in_time = REAL(CONDVAR_WAIT_TIMEOUT)(condvar, mutex, seconds, nanoseconds);
    __tsan_acquire(mutex);
    return in_time;
}
#endif

/* Once: every caller that finds it done sees what the closure wrote. */
#ifdef ONCE_CALL
void REAL(ONCE_CALL)(void *once, bool ignore_poison, void *closure, void *vtable);
void WRAP(ONCE_CALL)(void *once, bool ignore_poison, void *closure, void *vtable);
void WRAP(ONCE_CALL)(void *once, bool ignore_poison, void *closure, void *vtable)
{
    REAL(ONCE_CALL)(once, ignore_poison, closure, vtable);
    __tsan_acquire(once);
    __tsan_release(once);
}
#endif

/* Arc counts down with Release, and the last owner then issues an Acquire fence, which
 * ThreadSanitizer does not support. Counting down with Acquire as well has the same effect. */
uint64_t __real___tsan_atomic64_fetch_sub(volatile void *word, uint64_t value, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile void *word, uint64_t value, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile void *word, uint64_t value, int order)
{
    return __real___tsan_atomic64_fetch_sub(word, value, order == __ATOMIC_RELEASE ? __ATOMIC_ACQ_REL : order);
}
