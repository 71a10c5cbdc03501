/* Wraps mmap, munmap and mremap for ThreadSanitizer, which identifies memory by its address. Ranks
 * that are threads of one process map each other's files a second time, and ThreadSanitizer would
 * not see that an access through one mapping is ordered with one through the other. So in the
 * instrumented programs (ld --wrap) mmap returns the first address again for a range of a file that
 * is mapped already, and the last user unmaps it. mremap fails, since it maps a range again without
 * its file; the library then keeps descriptors instead. A rank lets go of a range by mapping
 * private memory over it, which would take the range from all ranks, so the wrapper leaves such a
 * range as it is. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct shared {
    dev_t device;
    ino_t file;
    off_t offset;
    size_t length;
    int protection;
    void *base;
    size_t users;
    struct shared *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *all;

void *__real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t length);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t length);
void *__wrap_mremap(void *old, size_t old_length, size_t length, int flags, ...);

void *__wrap_mremap(void *old, size_t old_length, size_t length, int flags, ...)
{
    (void)old, (void)old_length, (void)length, (void)flags;
    errno = EINVAL;
    return MAP_FAILED;
}

/* Whether other ranks use a range over which private memory is mapped. If none does, the range is
 * removed from the list. */
static int stays(char *at, size_t length)
{
    int others = 0;
    pthread_mutex_lock(&lock);
    struct shared **link = &all;
    while (*link != NULL && !(at >= (char *)(*link)->base && at + length <= (char *)(*link)->base + (*link)->length))
        link = &(*link)->next;
    struct shared *s = *link;
    if (s != NULL && s->users == 1 && s->length == length) {
        *link = s->next;
        free(s);
    } else {
        others = s != NULL;
    }
    pthread_mutex_unlock(&lock);
    return others;
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct stat about;
    if ((flags & MAP_FIXED) && fd < 0 && stays(address, length))
        return address;
    if (address != NULL || fd < 0 || !(flags & MAP_SHARED) || fstat(fd, &about) != 0)
        return __real_mmap(address, length, protection, flags, fd, offset);
    pthread_mutex_lock(&lock);
    struct shared *s = all;
    while (s != NULL && !(s->device == about.st_dev && s->file == about.st_ino && s->protection == protection &&
                          s->offset <= offset && offset + (off_t)length <= s->offset + (off_t)s->length))
        s = s->next;
    void *base = s != NULL ? (char *)s->base + (offset - s->offset)
                           : __real_mmap(NULL, length, protection, flags, fd, offset);
    if (s == NULL && base != MAP_FAILED) {
        s = malloc(sizeof *s);
        if (s == NULL)
            abort();
        *s = (struct shared){about.st_dev, about.st_ino, offset, length, protection, base, 0, all};
        all = s;
    }
    if (s != NULL)
        s->users++;
    pthread_mutex_unlock(&lock);
    return base;
}

int __wrap_munmap(void *address, size_t length)
{
    pthread_mutex_lock(&lock);
    struct shared **link = &all;
    char *at = address;
    while (*link != NULL && !(at >= (char *)(*link)->base && at + length <= (char *)(*link)->base + (*link)->length))
        link = &(*link)->next;
    struct shared *s = *link;
    int answer = 0;
    if (s == NULL) {
        answer = __real_munmap(address, length);
    } else if (--s->users == 0) {
        answer = __real_munmap(s->base, s->length);
        *link = s->next;
        free(s);
    }
    pthread_mutex_unlock(&lock);
    return answer;
}
