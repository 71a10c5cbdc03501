/* Reads and writes of arrays. Each operation has one function that fills in the parameters, and
 * three that pass it a function of llcl.h: the try form, the _async form, and the blocking form.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arrays.h"

typedef llcl_status_t read_call(llcl_context_t *, const llcl_read_params_t *);
typedef llcl_status_t write_call(llcl_context_t *, const llcl_write_params_t *);
typedef llcl_status_t strided_call(llcl_context_t *, const llcl_strided_params_t *);
typedef llcl_status_t write_small_call(llcl_context_t *, const llcl_write_small_params_t *);
typedef llcl_status_t write_signal_call(llcl_context_t *, const llcl_write_signal_params_t *);

/* Parameters of the functions below. Fortran passes handles and numbers by value. An absent
 * argument is NULL. */
#define CONTEXT llcl_context_t *context, uint32_t peer
#define ENDS const llcl_completion_t *on_local, const llcl_completion_t *on_complete, const uint32_t *flags
#define SIGNAL llcl_remote_t signal, uint64_t value, uint32_t op

static const char no_pieces[] = "the section runs backwards, its size is unknown, or more than 8 of its dimensions "
                                "have gaps: pass a section that ascends, or a(1:n)";
static const char no_local_end[] = "`on_local` is there only where the array's elements lie one after the other: wait "
                                   "for `on_complete`";

/* Describes the array as pieces, which lie one after the other at the peer. Returns 0 if no
 * llcl_strided_params_t can describe it. */
static int pieces_of(const CFI_cdesc_t *array, llcl_strided_params_t *params)
{
    uint64_t packed;
    params->size = array->elem_len;
    packed = params->size;
    for (int i = 0; i < array->rank; i++) {
        CFI_index_t extent = array->dim[i].extent, stride = array->dim[i].sm;
        uint32_t n = params->dimensions;
        if (extent == 1)
            continue;
        if (extent < 0 || stride < 0)
            return 0;
        if (n == 0 && (size_t)stride == params->size) {
            params->size *= (size_t)extent;
            packed = params->size;
            continue;
        }
        /* If this dimension continues where the inner one ends, it extends the inner one. */
        if (n > 0 && (uint64_t)stride == params->local_strides[n - 1] * params->extents[n - 1]) {
            params->extents[n - 1] *= (uint64_t)extent;
            packed *= (uint64_t)extent;
            continue;
        }
        if (n == LLCL_STRIDED_DIMENSIONS)
            return 0;
        params->extents[n] = (uint64_t)extent;
        params->local_strides[n] = (uint64_t)stride;
        params->remote_strides[n] = packed;
        params->dimensions++;
        packed *= (uint64_t)extent;
    }
    return 1;
}

/* Reads or writes an array whose elements do not lie one after the other. */
static void scattered_array(strided_call *call, const char *name, CONTEXT, const CFI_cdesc_t *array,
                            llcl_remote_t remote, ENDS, llcl_status_t *status)
{
    llcl_strided_params_t params = LLCL_STRIDED_PARAMS_INIT;
    if (!pieces_of(array, &params)) {
        llclf_refuse(name, no_pieces, status);
        return;
    }
    if (completion_of(on_local).kind != LLCL_COMPLETE_NONE) {
        llclf_refuse(name, no_local_end, status);
        return;
    }
    params.peer = peer;
    params.flags = flags_of(flags);
    params.local = llcl_local_address(array->base_addr);
    params.remote = remote;
    params.on_complete = completion_of(on_complete);
    finish(name, call(context, &params), status);
}

/* Initialisers name every member here. Else gcc clears the struct by a string instruction
 * (`rep stos`), which takes longer than the rest of the subroutine. */
static inline void read_array(read_call *call, strided_call *scattered, const char *name, CONTEXT,
                              llcl_remote_t remote, const CFI_cdesc_t *array,
                              const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    size_t size;
    if (!one_piece(array, &size)) {
        scattered_array(scattered, name, context, peer, array, remote, NULL, on_complete, flags, status);
        return;
    }
    llcl_read_params_t params = {.peer = peer, .flags = flags_of(flags), .source = remote, .size = size,
        .destination = llcl_local_address(array->base_addr), .on_complete = completion_of(on_complete)};
    finish(name, call(context, &params), status);
}

void llclf_try_read_async(CONTEXT, llcl_remote_t remote, const CFI_cdesc_t *array,
                          const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    read_array(llcl_try_read_async, llcl_try_read_strided_async, "llcl_try_read_async", context, peer, remote,
               array, on_complete, flags, status);
}

void llclf_read_async(CONTEXT, llcl_remote_t remote, const CFI_cdesc_t *array,
                      const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    read_array(llcl_read_async, llcl_read_strided_async, "llcl_read_async", context, peer, remote, array,
               on_complete, flags, status);
}

void llclf_read(CONTEXT, llcl_remote_t remote, const CFI_cdesc_t *array, llcl_status_t *status)
{
    read_array(llcl_read, llcl_read_strided, "llcl_read", context, peer, remote, array, NULL, NULL, status);
}

static inline void write_array(write_call *call, strided_call *scattered, const char *name, CONTEXT,
                               const CFI_cdesc_t *array, llcl_remote_t remote, ENDS, llcl_status_t *status)
{
    size_t size;
    if (!one_piece(array, &size)) {
        scattered_array(scattered, name, context, peer, array, remote, on_local, on_complete, flags, status);
        return;
    }
    llcl_write_params_t params = {.peer = peer, .flags = flags_of(flags), .destination = remote, .size = size,
        .source = llcl_local_address(array->base_addr), .on_local = completion_of(on_local),
        .on_complete = completion_of(on_complete)};
    finish(name, call(context, &params), status);
}

void llclf_try_write_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, ENDS, llcl_status_t *status)
{
    write_array(llcl_try_write_async, llcl_try_write_strided_async, "llcl_try_write_async", context, peer, array,
                remote, on_local, on_complete, flags, status);
}

void llclf_write_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, ENDS, llcl_status_t *status)
{
    write_array(llcl_write_async, llcl_write_strided_async, "llcl_write_async", context, peer, array, remote,
                on_local, on_complete, flags, status);
}

void llclf_write(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, llcl_status_t *status)
{
    write_array(llcl_write, llcl_write_strided, "llcl_write", context, peer, array, remote, NULL, NULL, NULL,
                status);
}

static inline void write_small_array(write_small_call *call, const char *name, CONTEXT, const CFI_cdesc_t *array,
                                     llcl_remote_t remote, const llcl_completion_t *on_complete,
                                     const uint32_t *flags, llcl_status_t *status)
{
    llcl_write_small_params_t params = LLCL_WRITE_SMALL_PARAMS_INIT;
    if (!one_piece(array, &params.size)) {
        llclf_refuse(name, llclf_scattered, status);
        return;
    }
    params.peer = peer;
    params.flags = flags_of(flags);
    params.source = array->base_addr;
    params.destination = remote;
    params.on_complete = completion_of(on_complete);
    finish(name, call(context, &params), status);
}

void llclf_try_write_small_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote,
                                 const llcl_completion_t *on_complete, const uint32_t *flags,
                                 llcl_status_t *status)
{
    write_small_array(llcl_try_write_small_async, "llcl_try_write_small_async", context, peer, array, remote,
                      on_complete, flags, status);
}

void llclf_write_small_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote,
                             const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    write_small_array(llcl_write_small_async, "llcl_write_small_async", context, peer, array, remote, on_complete,
                      flags, status);
}

void llclf_write_small(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, llcl_status_t *status)
{
    write_small_array(llcl_write_small, "llcl_write_small", context, peer, array, remote, NULL, NULL, status);
}

static inline void write_signal_array(write_signal_call *call, const char *name, CONTEXT,
                                      const CFI_cdesc_t *array, llcl_remote_t remote, SIGNAL, ENDS,
                                      llcl_status_t *status)
{
    size_t size;
    if (!one_piece(array, &size)) {
        llclf_refuse(name, llclf_scattered, status);
        return;
    }
    llcl_write_signal_params_t params = {.peer = peer, .flags = flags_of(flags), .destination = remote, .size = size,
        .source = llcl_local_address(array->base_addr), .signal = signal, .signal_value = value, .signal_op = op,
        .reserved = 0, .on_local = completion_of(on_local), .on_complete = completion_of(on_complete)};
    finish(name, call(context, &params), status);
}

void llclf_try_write_signal_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, SIGNAL, ENDS,
                                  llcl_status_t *status)
{
    write_signal_array(llcl_try_write_signal_async, "llcl_try_write_signal_async", context, peer, array, remote,
                       signal, value, op, on_local, on_complete, flags, status);
}

void llclf_write_signal_async(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, SIGNAL, ENDS,
                              llcl_status_t *status)
{
    write_signal_array(llcl_write_signal_async, "llcl_write_signal_async", context, peer, array, remote, signal,
                       value, op, on_local, on_complete, flags, status);
}

void llclf_write_signal(CONTEXT, const CFI_cdesc_t *array, llcl_remote_t remote, SIGNAL, llcl_status_t *status)
{
    write_signal_array(llcl_write_signal, "llcl_write_signal", context, peer, array, remote, signal, value, op,
                       NULL, NULL, NULL, status);
}
