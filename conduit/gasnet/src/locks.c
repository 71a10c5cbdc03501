/* The read-write locks of the tools. */
#include "internal.h"

_Static_assert(sizeof(pthread_rwlock_t) <= sizeof(gexl_rwlock_t), "a lock has room for the system's");
_Static_assert(_Alignof(pthread_rwlock_t) <= _Alignof(gexl_rwlock_t), "a lock is aligned as the system's");

/* Zeroes are a free lock: tools_alone.c tests GASNETT_RWLOCK_INITIALIZER. */
static pthread_rwlock_t *lock_in(gexl_rwlock_t *lock) { return (pthread_rwlock_t *)(void *)lock; }

int gexl_rwlock_init(gexl_rwlock_t *lock) { return pthread_rwlock_init(lock_in(lock), NULL); }
int gexl_rwlock_destroy(gexl_rwlock_t *lock) { return pthread_rwlock_destroy(lock_in(lock)); }
int gexl_rwlock_rdlock(gexl_rwlock_t *lock) { return pthread_rwlock_rdlock(lock_in(lock)); }
int gexl_rwlock_wrlock(gexl_rwlock_t *lock) { return pthread_rwlock_wrlock(lock_in(lock)); }
int gexl_rwlock_unlock(gexl_rwlock_t *lock) { return pthread_rwlock_unlock(lock_in(lock)); }
int gexl_rwlock_tryrdlock(gexl_rwlock_t *lock) { return pthread_rwlock_tryrdlock(lock_in(lock)); }
int gexl_rwlock_trywrlock(gexl_rwlock_t *lock) { return pthread_rwlock_trywrlock(lock_in(lock)); }
