/* Subroutines that take arrays, other than reads and writes: atomics, collectives, messages,
 * regions.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arrays.h"
#include <string.h>

/* LLCL_TYPE_* of an array's elements; LLCL_TYPE_BYTES if the library has no such type. */
static uint32_t type_of(const CFI_cdesc_t *array)
{
    switch (array->type) {
    case CFI_type_int8_t: return LLCL_TYPE_I8;
    case CFI_type_int16_t: return LLCL_TYPE_I16;
    case CFI_type_int32_t: return LLCL_TYPE_I32;
    case CFI_type_int64_t: return LLCL_TYPE_I64;
    case CFI_type_float: return LLCL_TYPE_F32;
    case CFI_type_double: return LLCL_TYPE_F64;
    case CFI_type_long_double: return LLCL_TYPE_LONG_DOUBLE;
    case CFI_type_float_Complex: return LLCL_TYPE_COMPLEX_F32;
    case CFI_type_double_Complex: return LLCL_TYPE_COMPLEX_F64;
    case CFI_type_Bool: return LLCL_TYPE_BOOL;
    default: return LLCL_TYPE_BYTES;
    }
}

static uint64_t elements(const CFI_cdesc_t *array)
{
    uint64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= (uint64_t)array->dim[i].extent;
    return count;
}

/* Parameters of a collective on arrays, one of which may be absent. If `count` is absent, the
 * number of elements of the smaller array is used. That is the size of one rank's block, except in
 * an all-to-all, where both arrays have a block for each rank. In place an array may have one block
 * or all of them, depending on the collective, so `count` must be there. If the arguments cannot be
 * used, the type is one of LLCLF_TYPE_*, which the library refuses. */
llcl_coll_params_t llclf_coll_params(llcl_team_t *team, const CFI_cdesc_t *send, const CFI_cdesc_t *receive,
                                     const uint32_t *op, const uint32_t *root, const uint64_t *count,
                                     const uint32_t *flags)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    const CFI_cdesc_t *array;
    size_t size;
    send = is_there(send) ? send : NULL;
    receive = is_there(receive) ? receive : NULL;
    array = send != NULL ? send : receive;
    params.team = team;
    params.op = op != NULL ? *op : 0;
    params.root = root != NULL ? *root : 0;
    params.flags = flags_of(flags);
    if ((send != NULL && !one_piece(send, &size)) || (receive != NULL && !one_piece(receive, &size))) {
        params.type = LLCLF_TYPE_SCATTERED;
        return params;
    }
    /* All strings have one number, and so have all derived types: their lengths tell them apart. */
    if (send != NULL && receive != NULL &&
        (send->type != receive->type || send->elem_len != receive->elem_len)) {
        params.type = LLCLF_TYPE_OF_TWO;
        return params;
    }
    if (array != NULL && count == NULL && (params.flags & LLCL_COLL_IN_PLACE) != 0) {
        params.type = LLCLF_TYPE_NO_COUNT;
        return params;
    }
    if (send != NULL)
        params.send = llcl_local_address(send->base_addr);
    if (receive != NULL)
        params.receive = llcl_local_address(receive->base_addr);
    if (array == NULL)
        return params;
    params.type = type_of(array);
    params.element_size = params.type == LLCL_TYPE_BYTES ? (uint32_t)array->elem_len : 0;
    params.count = elements(array);
    if (send != NULL && receive != NULL && elements(receive) < params.count)
        params.count = elements(receive);
    if (count != NULL)
        params.count = *count;
    return params;
}

static const char not_one_type[] =
    "operand, compare and result are scalars of one type, integer or real of 4 or 8 bytes, and one of them is there";

/* The bits of a scalar in the low-order part of a word; 0 if it is absent. */
static uint64_t bits(const CFI_cdesc_t *scalar)
{
    uint64_t word = 0;
    uint32_t half;
    if (scalar == NULL)
        return 0;
    if (scalar->elem_len == 8) {
        memcpy(&word, scalar->base_addr, 8);
        return word;
    }
    memcpy(&half, scalar->base_addr, 4);
    return half;
}

typedef llcl_status_t atomic_call(llcl_context_t *, const llcl_atomic_params_t *);
#define SCALARS const CFI_cdesc_t *operand, const CFI_cdesc_t *result, const CFI_cdesc_t *compare

static void atomic(atomic_call *call, const char *name, llcl_context_t *context, uint32_t peer,
                   llcl_remote_t target, uint32_t op, SCALARS, const llcl_completion_t *on_complete,
                   const uint32_t *flags, llcl_status_t *status)
{
    llcl_atomic_params_t params = LLCL_ATOMIC_PARAMS_INIT;
    const CFI_cdesc_t *scalars[3] = {operand, result, compare};
    for (int i = 0; i < 3; i++) {
        scalars[i] = is_there(scalars[i]) ? scalars[i] : NULL;
        uint32_t type = scalars[i] == NULL ? params.type : scalars[i]->rank != 0 ? 0 : type_of(scalars[i]);
        if (params.type == 0)
            params.type = type;
        if (type != params.type || type > LLCL_TYPE_F64 || (type == 0 && scalars[i] != NULL)) {
            llclf_refuse(name, not_one_type, status);
            return;
        }
    }
    if (params.type == 0) {
        llclf_refuse(name, not_one_type, status);
        return;
    }
    if (op != LLCL_OP_LOAD && scalars[0] == NULL) {
        llclf_refuse(name, "operand is absent: only LLCL_OP_LOAD needs none", status);
        return;
    }
    if (op == LLCL_OP_COMPARE_SWAP && scalars[2] == NULL) {
        llclf_refuse(name, "compare is absent: LLCL_OP_COMPARE_SWAP needs the expected value", status);
        return;
    }
    params.peer = peer;
    params.flags = flags_of(flags);
    params.target = target;
    params.op = op;
    params.operand = bits(scalars[0]);
    params.result = scalars[1] != NULL ? scalars[1]->base_addr : NULL;
    params.compare = bits(scalars[2]);
    params.on_complete = completion_of(on_complete);
    llclf_finish(name, call(context, &params), status);
}

void llclf_try_atomic_async(llcl_context_t *context, uint32_t peer, llcl_remote_t target, uint32_t op, SCALARS,
                            const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    atomic(llcl_try_atomic_async, "llcl_try_atomic_async", context, peer, target, op, operand, result, compare,
           on_complete, flags, status);
}

void llclf_atomic_async(llcl_context_t *context, uint32_t peer, llcl_remote_t target, uint32_t op, SCALARS,
                        const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    atomic(llcl_atomic_async, "llcl_atomic_async", context, peer, target, op, operand, result, compare, on_complete,
           flags, status);
}

void llclf_atomic(llcl_context_t *context, uint32_t peer, llcl_remote_t target, uint32_t op, SCALARS,
                  llcl_status_t *status)
{
    atomic(llcl_atomic, "llcl_atomic", context, peer, target, op, operand, result, compare, NULL, NULL, status);
}

typedef llcl_status_t am_call(llcl_context_t *, const llcl_am_params_t *);
#define MESSAGE                                                                                   \
    llcl_context_t *context, uint32_t peer, uint32_t id, const CFI_cdesc_t *payload,              \
        const CFI_cdesc_t *reply, size_t *reply_size, const CFI_cdesc_t *header, const uint16_t *tag

static void am(am_call *call, const char *name, MESSAGE, const llcl_completion_t *on_local,
               const llcl_completion_t *on_complete, const uint32_t *flags, llcl_status_t *status)
{
    llcl_am_params_t params = LLCL_AM_PARAMS_INIT;
    void *bytes[3];
    if (!piece(payload, &bytes[0], &params.payload_size) || !piece(reply, &bytes[1], &params.reply_capacity) ||
        !piece(header, &bytes[2], &params.header_size)) {
        llclf_refuse(name, llclf_scattered, status);
        return;
    }
    params.peer = peer;
    params.flags = flags_of(flags);
    params.id = id;
    params.tag = tag != NULL ? *tag : 0;
    params.payload = bytes[0];
    params.reply = bytes[1];
    params.header = bytes[2];
    params.reply_size = reply_size;
    params.on_local = completion_of(on_local);
    params.on_complete = completion_of(on_complete);
    llclf_finish(name, call(context, &params), status);
}

void llclf_try_am_async(MESSAGE, const llcl_completion_t *on_local, const llcl_completion_t *on_complete,
                        const uint32_t *flags, llcl_status_t *status)
{
    am(llcl_try_am_async, "llcl_try_am_async", context, peer, id, payload, reply, reply_size, header, tag, on_local,
       on_complete, flags, status);
}

void llclf_am_async(MESSAGE, const llcl_completion_t *on_local, const llcl_completion_t *on_complete,
                    const uint32_t *flags, llcl_status_t *status)
{
    am(llcl_am_async, "llcl_am_async", context, peer, id, payload, reply, reply_size, header, tag, on_local,
       on_complete, flags, status);
}

void llclf_am(MESSAGE, llcl_status_t *status)
{
    am(llcl_am, "llcl_am", context, peer, id, payload, reply, reply_size, header, tag, NULL, NULL, NULL, status);
}

void llclf_am_reply(llcl_am_t *message, const CFI_cdesc_t *data, llcl_status_t *status)
{
    void *address;
    size_t size;
    if (!piece(data, &address, &size))
        llclf_refuse("llcl_am_reply", llclf_scattered, status);
    else
        llclf_finish("llcl_am_reply", llcl_am_reply(message, address, size), status);
}

llcl_local_t llclf_local_address(const CFI_cdesc_t *array)
{
    return llcl_local_address(array->base_addr);
}

void llclf_region_register(llcl_context_t *context, const CFI_cdesc_t *array, llcl_region_t **region,
                           llcl_status_t *status)
{
    size_t size;
    if (!one_piece(array, &size))
        llclf_refuse("llcl_region_register", llclf_scattered, status);
    else
        llclf_finish("llcl_region_register", llcl_region_register(context, array->base_addr, size, 0, region), status);
}

/* Refuses a call at this rank. The library must hear of it, since the other ranks wait for this
 * one: it then refuses them, too. Its own status counts if it is another one, such as a death. */
static void refuse_exchange(llcl_context_t *context, const char *sentence, llcl_status_t *status)
{
    llcl_status_t answer = llcl_allgather_bytes(context, NULL, 1, NULL);
    if (answer == LLCL_ERR_INVALID)
        llclf_refuse("llcl_allgather_bytes", sentence, status);
    else
        llclf_finish("llcl_allgather_bytes", answer, status);
}

void llclf_allgather_bytes(llcl_context_t *context, const CFI_cdesc_t *mine, const CFI_cdesc_t *all,
                           llcl_status_t *status)
{
    size_t one, every;
    if (!one_piece(mine, &one) || !one_piece(all, &every))
        refuse_exchange(context, llclf_scattered, status);
    else if (one > 0 && every / one < llcl_size(context))
        refuse_exchange(context, "`all` has less room than llcl_size times the bytes of `mine`", status);
    else
        llclf_finish("llcl_allgather_bytes", llcl_allgather_bytes(context, mine->base_addr, one, all->base_addr),
                     status);
}
