#include "plain.h"

#include <string.h>

static inline int inside(const plain_region_t *region, size_t offset, size_t size)
{
    return size <= region->size && offset <= region->size - size;
}

static inline void copy(void *to, const void *from, size_t size)
{
    if (size == 8)
        memcpy(to, from, 8); /* one load, one store */
    else
        memmove(to, from, size);
}

__attribute__((noinline)) int plain_write(const plain_params_t *params)
{
    if (!inside(params->local, params->local_offset, params->size) ||
        !inside(params->remote, params->remote_offset, params->size))
        return -1;
    copy(params->remote->base + params->remote_offset, params->local->base + params->local_offset, params->size);
    return 0;
}

__attribute__((noinline)) int plain_read(const plain_params_t *params)
{
    if (!inside(params->local, params->local_offset, params->size) ||
        !inside(params->remote, params->remote_offset, params->size))
        return -1;
    copy(params->local->base + params->local_offset, params->remote->base + params->remote_offset, params->size);
    return 0;
}

__attribute__((noinline)) int plain_fetch_add(const plain_params_t *params)
{
    if (!inside(params->local, params->local_offset, 8) || !inside(params->remote, params->remote_offset, 8) ||
        params->remote_offset % 8 != 0)
        return -1;
    uint64_t *word = (uint64_t *)(void *)(params->remote->base + params->remote_offset);
    /* SeqCst, as the library's atomics; on x86 every order is the same locked instruction. */
    uint64_t old = __atomic_fetch_add(word, params->operand, __ATOMIC_SEQ_CST);
    memcpy(params->local->base + params->local_offset, &old, 8);
    return 0;
}
