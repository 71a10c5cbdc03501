/* llcl_inline.h - reads and writes of mapped memory without a call
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_INLINE_H
#define LLCL_INLINE_H

/*
 * A window is a part of a peer's region, looked up once. Where this process maps that memory, the
 * functions here are the load or the store itself, which the compiler puts into the caller.
 * Anything else (memory that is not mapped, a place that does not lie in the window, a word that is
 * not aligned, a compiler without the atomic builtins of gcc and clang) goes by llcl_read and
 * llcl_write of the place, which look at the region and its end and answer as they always do.
 *
 * What a call does and a load or a store cannot:
 * - It is not checked that the region still lives. A window ends when its owner frees the region,
 *   or with the context: agree before you free, as with any memory. Later loads show undefined
 *   bytes, and later stores are lost or may reach the region that has taken the place.
 * - Nobody is woken. For a word that a thread may wait for by llcl_wait_word: llcl_wake after the
 *   store, or llcl_write_value.
 * - It cannot tell that the peer has died: then the memory is still there, and nobody looks at it.
 *
 * Order: a word of 8 bytes is read with Acquire and written with Release, so a thread that sees the
 * value sees what the writing thread did before, as with llcl_write_value. Bytes have no order
 * among each other; write a word behind them.
 *
 * After the inlined put and get of GASNet-EX and of OpenSHMEM on shared memory.
 */

#include "llcl.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Some bytes of a peer, as this process reaches them. Made by llcl_window; nothing ends it. */
typedef struct llcl_window_t {
    /** The first of them, here; NULL: only calls reach them. */
    unsigned char *base;
    /** How many. */
    uint64_t size;
    /** Where they are. */
    llcl_remote_t remote;
    /** The context. */
    llcl_context_t *context;
    /** Whose. */
    uint32_t peer;
} llcl_window_t;

/**
 * Looks `size` bytes of a peer up, from `remote` on, as llcl_remote_pointer does.
 *
 * `context`: a live context. `peer`: whose memory. `remote`: a place in a region of that rank.
 * Returns the window by value. What is wrong with the arguments is answered by the functions that
 * use it. Waits for the first contact with the peer. Any thread may call it.
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

/** The place in a window, if loads and stores reach `size` bytes there; NULL: a call must. */
static inline unsigned char *llcl_window_place(llcl_window_t window, uint64_t offset, uint64_t size)
{
    if (window.base == NULL || offset > window.size || size > window.size - offset)
        return NULL;
    return window.base + offset;
}

/** The place in a window as calls name it; one that no number can name is past the region's end. */
static inline llcl_remote_t llcl_window_remote(llcl_window_t window, uint64_t offset)
{
    llcl_remote_t remote = window.remote;
    remote.offset = offset > UINT64_MAX - remote.offset ? UINT64_MAX : remote.offset + offset;
    return remote;
}

/** Writes bytes by a call. As llcl_write; `offset` counts from the window's begin. */
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

/** Reads bytes by a call. As llcl_read; `offset` counts from the window's begin. */
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
 * begin. `value`: the word.
 * LLCL_OK: written; where a call was needed, what llcl_write answers. Any thread may call it; where
 * a call is needed, not inside a callback.
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
        /* One of its own, so that the store above takes the word from a register. */
        uint64_t word = value;
        return llcl_window_put_by_call(window, offset, &word, sizeof word);
    }
}

/**
 * Reads a word of 8 bytes.
 *
 * `value`: where it goes. All else as of llcl_window_put64, with llcl_read.
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
 * `offset`: bytes from the window's begin. `from`: `size` bytes of this process, which do not
 * overlap those that are written; NULL with `size` 0. LLCL_OK and all else: as llcl_window_put64.
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
 * `to`: `size` bytes of this process, which do not overlap those that are read. All else as of
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
