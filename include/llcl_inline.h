/* llcl_inline.h - reads and writes of mapped memory without a call
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_INLINE_H
#define LLCL_INLINE_H

/*
 * A window is a part of a peer's region, which the program looks up once. If this process maps that
 * memory, the functions of this header are loads and stores, which the compiler inlines. In all
 * other cases they call llcl_read or llcl_write, which check the region and its bounds and return
 * the same statuses as always: if the memory is not mapped, the bytes do not lie in the window, a
 * word is not aligned, or the compiler lacks the atomic builtins of gcc and clang.
 *
 * Loads and stores do less than a call:
 * - They do not check that the region still exists. A window becomes invalid when the owner frees
 *   the region, and when the context ends. So ranks must agree before one of them frees the region.
 *   Later loads return undefined bytes. Later stores are lost, or change another region at the same
 *   address.
 * - They wake no thread. If a thread may wait for a word by llcl_wait_word, call llcl_wake after
 *   the store, or use llcl_write_value.
 * - They do not report that the peer has died: its memory stays mapped.
 *
 * Order: a word of 8 bytes is read with Acquire and written with Release. So a thread that sees the
 * value also sees what the writing thread did before, as with llcl_write_value. Other bytes have no
 * order among each other; write a word after them.
 *
 * After the inlined put and get of GASNet-EX and of OpenSHMEM on shared memory.
 */

#include "llcl.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a peer. Made by llcl_window; it need not be freed. */
typedef struct llcl_window_t {
    /** Their address in this process; NULL: they are not mapped. */
    unsigned char *base;
    /** Their number. */
    uint64_t size;
    /** Their remote address. */
    llcl_remote_t remote;
    /** The context. */
    llcl_context_t *context;
    /** The rank of the peer. */
    uint32_t peer;
} llcl_window_t;

/**
 * Looks up `size` bytes of a peer, as llcl_remote_pointer does.
 *
 * `context`: a live context. `peer`: the rank of the peer. `remote`: the address of the first byte,
 * in a region of that rank. Returns the window by value. If one of these is wrong, the functions
 * that use the window return the error. A window may be longer than the rest of the region: then
 * all its uses are calls, which refuse only places outside of the region. Waits for the first
 * contact with the peer. Any thread may call it.
 */
static inline llcl_window_t llcl_window(llcl_context_t *context, uint32_t peer, llcl_remote_t remote,
                                        uint64_t size)
{
    llcl_window_t window;
    window.base = (unsigned char *)llcl_remote_pointer(context, peer, remote, (size_t)size);
    window.size = size;
    window.remote = remote;
    window.context = context;
    window.peer = peer;
    return window;
}

/**
 * The address of bytes of a window in this process, for loads and stores of the program.
 *
 * `window`: of llcl_window. `offset`: bytes from its beginning. `size`: bytes that the program uses
 * from there on. Returns NULL if they are not mapped or not in the window. Any thread may call it.
 */
static inline unsigned char *llcl_window_place(llcl_window_t window, uint64_t offset, uint64_t size)
{
    if (window.base == NULL || offset > window.size || size > window.size - offset)
        return NULL;
    return window.base + offset;
}

/**
 * The remote address of a byte of a window, for operations of llcl.h.
 *
 * `window`: of llcl_window. `offset`: bytes from its beginning; checked when the address is used,
 * not here. A sum beyond 64 bits becomes the largest number, which operations refuse with
 * LLCL_ERR_RANGE. Any thread may call it.
 */
static inline llcl_remote_t llcl_window_remote(llcl_window_t window, uint64_t offset)
{
    llcl_remote_t remote = window.remote;
    remote.offset = offset > UINT64_MAX - remote.offset ? UINT64_MAX : remote.offset + offset;
    return remote;
}

/**
 * Writes bytes by llcl_write; the other functions call it where they cannot store.
 *
 * `window`: of llcl_window. `offset`: bytes from its beginning. `from`: `size` bytes of this
 * process; NULL with `size` 0. Returns the status of llcl_write; inside a callback LLCL_ERR_STATE.
 * Any thread may call it.
 */
static inline llcl_status_t llcl_window_put_by_call(llcl_window_t window, uint64_t offset,
                                                    const void *from, uint64_t size)
{
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    params.peer = window.peer;
    params.source = llcl_local_address(from);
    params.destination = llcl_window_remote(window, offset);
    params.size = size;
    return llcl_write(window.context, &params);
}

/**
 * Reads bytes by llcl_read; the other functions call it where they cannot load.
 *
 * `to`: where `size` bytes go; NULL with `size` 0. All else is as for llcl_window_put_by_call, with
 * llcl_read.
 */
static inline llcl_status_t llcl_window_get_by_call(llcl_window_t window, uint64_t offset, void *to,
                                                    uint64_t size)
{
    llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
    params.peer = window.peer;
    params.source = llcl_window_remote(window, offset);
    params.destination = llcl_local_address(to);
    params.size = size;
    return llcl_read(window.context, &params);
}

/**
 * Writes a word of 8 bytes.
 *
 * `window`: of llcl_window, by value, so that it stays in registers. `offset`: bytes from its
 * beginning. `value`: the word.
 * LLCL_OK: written; if llcl_write was called, its status. Any thread may call it, but inside a
 * callback only for memory that is mapped.
 */
static inline llcl_status_t llcl_window_put64(llcl_window_t window, uint64_t offset, uint64_t value)
{
#ifdef __GNUC__
    unsigned char *place = llcl_window_place(window, offset, sizeof value);
    if (place != NULL && ((uintptr_t)place & (sizeof value - 1)) == 0) {
        __atomic_store_n((uint64_t *)(void *)place, value, __ATOMIC_RELEASE);
        return LLCL_OK;
    }
#endif
    {
        /* A copy, so that the store above takes the word from a register. */
        uint64_t word = value;
        return llcl_window_put_by_call(window, offset, &word, sizeof word);
    }
}

/**
 * Reads a word of 8 bytes.
 *
 * `value`: the place of the result. All else is as for llcl_window_put64, with llcl_read.
 */
static inline llcl_status_t llcl_window_get64(llcl_window_t window, uint64_t offset, uint64_t *value)
{
#ifdef __GNUC__
    unsigned char *place = llcl_window_place(window, offset, sizeof *value);
    if (place != NULL && ((uintptr_t)place & (sizeof *value - 1)) == 0) {
        *value = __atomic_load_n((uint64_t *)(void *)place, __ATOMIC_ACQUIRE);
        return LLCL_OK;
    }
#endif
    return llcl_window_get_by_call(window, offset, value, sizeof *value);
}

/**
 * Writes bytes.
 *
 * `offset`: bytes from the beginning of the window. `from`: `size` bytes of this process, which do
 * not overlap those that are written; NULL with `size` 0. All else is as for llcl_window_put64.
 */
static inline llcl_status_t llcl_window_put(llcl_window_t window, uint64_t offset, const void *from,
                                            uint64_t size)
{
    unsigned char *place = llcl_window_place(window, offset, size);
    if (place == NULL || size == 0)
        return llcl_window_put_by_call(window, offset, from, size);
    memcpy(place, from, (size_t)size);
    return LLCL_OK;
}

/**
 * Reads bytes.
 *
 * `to`: `size` bytes of this process, which do not overlap those that are read. All else is as for
 * llcl_window_put.
 */
static inline llcl_status_t llcl_window_get(llcl_window_t window, uint64_t offset, void *to,
                                            uint64_t size)
{
    unsigned char *place = llcl_window_place(window, offset, size);
    if (place == NULL || size == 0)
        return llcl_window_get_by_call(window, offset, to, size);
    memcpy(to, place, (size_t)size);
    return LLCL_OK;
}

#ifdef __cplusplus
}
#endif

#endif
