/* Preloaded by check-loom. Loom runs each thread of a model on a stack that it maps, protects and unmaps once for each
 * interleaving, which takes two thirds of the time of the models. Here each thread of the program keeps its unmapped stacks,
 * and a later mapping of that size takes one of them. The guard page of a kept stack stays protected. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 32 };
static __thread struct stack {
    void *start;
    size_t size;
    int is_free, has_guard;
} stacks[MOST];

static struct stack *stack_at(void *start)
{
    for (struct stack *s = stacks; s < stacks + MOST; s++)
        if (s->start == start)
            return s;
    return NULL;
}

void *mmap(void *near, size_t size, int protection, int flags, int file, off_t offset)
{
    int is_stack = near == NULL && file < 0 && flags & MAP_STACK;
    for (struct stack *s = stacks; is_stack && s < stacks + MOST; s++)
        if (s->is_free && s->size == size) {
            s->is_free = 0;
            return s->start;
        }
    void *start = (void *)syscall(SYS_mmap, near, size, protection, flags, file, offset);
    struct stack *room = is_stack && start != MAP_FAILED ? stack_at(NULL) : NULL;
    if (room != NULL)
        *room = (struct stack){.start = start, .size = size};
    return start;
}

int mprotect(void *start, size_t size, int protection)
{
    struct stack *stack = stack_at(start);
    if (stack != NULL && stack->has_guard && protection == PROT_NONE)
        return 0;
    int result = (int)syscall(SYS_mprotect, start, size, protection);
    if (stack != NULL)
        stack->has_guard = protection == PROT_NONE && result == 0;
    return result;
}

int munmap(void *start, size_t size)
{
    struct stack *stack = stack_at(start);
    if (stack != NULL && stack->size == size) {
        stack->is_free = 1;
        return 0;
    }
    return (int)syscall(SYS_munmap, start, size);
}
