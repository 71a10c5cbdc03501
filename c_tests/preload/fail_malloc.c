/* For LD_PRELOAD: of the allocations that the library makes from now on, number fail_malloc_at
 * fails (counted from 1), and all later ones too where fail_malloc_on is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

long fail_malloc_at; /* 0: none fails, and none is counted */
int fail_malloc_on;
long fail_malloc_done; /* how many have failed */

static long count;
static __thread int inside;

static int fails(void *caller)
{
    Dl_info info;
    long number;
    int ours;
    if (fail_malloc_at == 0 || inside)
        return 0;
    inside = 1;
    ours = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libllcl");
    inside = 0;
    if (!ours)
        return 0;
    number = __sync_add_and_fetch(&count, 1);
    if (number != fail_malloc_at && !(fail_malloc_on && number > fail_malloc_at))
        return 0;
    __sync_add_and_fetch(&fail_malloc_done, 1);
    return 1;
}

void *malloc(size_t size)
{
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (fails(__builtin_return_address(0)))
        return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
