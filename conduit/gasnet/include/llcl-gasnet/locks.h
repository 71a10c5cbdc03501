/* Locks and thread-specific data of the tools. Included by gasnet_tools.h. In a process of one
 * thread the locks do nothing, unless the client defines GASNETT_USE_TRUE_MUTEXES. */

/* A read-write lock. glibc does not declare its own in strict C99, so it lies in this type, and
 * functions of the conduit use it. */
typedef struct {
    uint64_t words[8];
} gexl_rwlock_t;
int gexl_rwlock_init(gexl_rwlock_t *lock);
int gexl_rwlock_destroy(gexl_rwlock_t *lock);
int gexl_rwlock_rdlock(gexl_rwlock_t *lock);
int gexl_rwlock_wrlock(gexl_rwlock_t *lock);
int gexl_rwlock_unlock(gexl_rwlock_t *lock);
int gexl_rwlock_tryrdlock(gexl_rwlock_t *lock);
int gexl_rwlock_trywrlock(gexl_rwlock_t *lock);

#if GASNETT_THREAD_SAFE || GASNETT_USE_TRUE_MUTEXES
#include <pthread.h>
typedef pthread_mutex_t gasnett_mutex_t;
typedef pthread_cond_t gasnett_cond_t;
#define GASNETT_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define GASNETT_COND_INITIALIZER PTHREAD_COND_INITIALIZER
#define gasnett_mutex_init(lock) ((void)pthread_mutex_init((lock), NULL))
#define gasnett_mutex_destroy(lock) ((void)pthread_mutex_destroy(lock))
#define gasnett_mutex_destroy_ignoreerr(lock) pthread_mutex_destroy(lock)
#define gasnett_mutex_lock(lock) ((void)pthread_mutex_lock(lock))
#define gasnett_mutex_unlock(lock) ((void)pthread_mutex_unlock(lock))
#define gasnett_mutex_trylock(lock) pthread_mutex_trylock(lock)
#define gasnett_cond_init(cond) ((void)pthread_cond_init((cond), NULL))
#define gasnett_cond_destroy(cond) ((void)pthread_cond_destroy(cond))
#define gasnett_cond_signal(cond) ((void)pthread_cond_signal(cond))
#define gasnett_cond_broadcast(cond) ((void)pthread_cond_broadcast(cond))
#define gasnett_cond_wait(cond, lock) ((void)pthread_cond_wait((cond), (lock)))
typedef gexl_rwlock_t gasnett_rwlock_t;
#define GASNETT_RWLOCK_INITIALIZER {{0}}
#define gasnett_rwlock_init(lock) ((void)gexl_rwlock_init(lock))
#define gasnett_rwlock_destroy(lock) ((void)gexl_rwlock_destroy(lock))
#define gasnett_rwlock_rdlock(lock) ((void)gexl_rwlock_rdlock(lock))
#define gasnett_rwlock_wrlock(lock) ((void)gexl_rwlock_wrlock(lock))
#define gasnett_rwlock_unlock(lock) ((void)gexl_rwlock_unlock(lock))
#define gasnett_rwlock_tryrdlock(lock) gexl_rwlock_tryrdlock(lock)
#define gasnett_rwlock_trywrlock(lock) gexl_rwlock_trywrlock(lock)
#else
typedef char gasnett_mutex_t;
typedef char gasnett_cond_t;
typedef char gasnett_rwlock_t;
#define GASNETT_MUTEX_INITIALIZER 0
#define GASNETT_COND_INITIALIZER 0
#define GASNETT_RWLOCK_INITIALIZER 0
#define gasnett_mutex_init(lock) ((void)(lock))
#define gasnett_mutex_destroy(lock) ((void)(lock))
#define gasnett_mutex_destroy_ignoreerr(lock) ((void)(lock), 0)
#define gasnett_mutex_lock(lock) ((void)(lock))
#define gasnett_mutex_unlock(lock) ((void)(lock))
#define gasnett_mutex_trylock(lock) ((void)(lock), 0)
#define gasnett_cond_init(cond) ((void)(cond))
#define gasnett_cond_destroy(cond) ((void)(cond))
#define gasnett_cond_signal(cond) ((void)(cond))
#define gasnett_cond_broadcast(cond) ((void)(cond))
#define gasnett_cond_wait(cond, lock) gasnett_fatalerror("a wait for a condition in a process of one thread")
#define gasnett_rwlock_init(lock) ((void)(lock))
#define gasnett_rwlock_destroy(lock) ((void)(lock))
#define gasnett_rwlock_rdlock(lock) ((void)(lock))
#define gasnett_rwlock_wrlock(lock) ((void)(lock))
#define gasnett_rwlock_unlock(lock) ((void)(lock))
#define gasnett_rwlock_tryrdlock(lock) ((void)(lock), 0)
#define gasnett_rwlock_trywrlock(lock) ((void)(lock), 0)
#endif
#define gasnett_mutex_assertlocked(lock) ((void)(lock))
#define gasnett_mutex_assertunlocked(lock) ((void)(lock))
#define gasnett_rwlock_assertlocked(lock) ((void)(lock))
#define gasnett_rwlock_assertrdlocked(lock) ((void)(lock))
#define gasnett_rwlock_assertwrlocked(lock) ((void)(lock))
#define gasnett_rwlock_assertunlocked(lock) ((void)(lock))

#if GASNETT_THREAD_SAFE
#define GEXL_THREAD __thread
#else
#define GEXL_THREAD
#endif
#define GASNETT_THREADKEY_DEFINE(key) GEXL_THREAD void *gexl_key_##key
#define GASNETT_THREADKEY_DECLARE(key) extern GEXL_THREAD void *gexl_key_##key
#define gasnett_threadkey_init(key) ((void)&gexl_key_##key)
#define gasnett_threadkey_get(key) (gexl_key_##key)
#define gasnett_threadkey_get_noinit(key) (gexl_key_##key)
#define gasnett_threadkey_set(key, value) ((void)(gexl_key_##key = (void *)(value)))
#define gasnett_threadkey_set_noinit(key, value) ((void)(gexl_key_##key = (void *)(value)))
