/* Shared by the C sources of the module `llcl`. The compiler passes arrays of any type and rank as
 * descriptors (ISO_Fortran_binding.h), so that no argument needs a temporary.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_FORTRAN_ARRAYS_H
#define LLCL_FORTRAN_ARRAYS_H
#include <ISO_Fortran_binding.h>
#include <llcl.h>

/* Ends a subroutine. Stores `answer` in `status`. If `status` is NULL, any answer but LLCL_OK and
 * LLCL_DONE ends the program. */
void llclf_finish(const char *name, llcl_status_t answer, llcl_status_t *status);

/* llclf_finish() without a call if the operation has succeeded, for subroutines that take some
 * nanoseconds. */
static inline void finish(const char *name, llcl_status_t answer, llcl_status_t *status)
{
    if (answer != LLCL_OK)
        llclf_finish(name, answer, status);
    else if (status != NULL)
        *status = LLCL_OK;
}

/* Ends a subroutine with LLCL_ERR_INVALID. `sentence`, a static text, becomes the message that
 * llcl_last_error of the module returns. */
void llclf_refuse(const char *name, const char *sentence, llcl_status_t *status);

extern const char llclf_scattered[];

/* Values of llcl_coll_params_t.type that say why the arrays cannot be used. The library refuses
 * such a type, at every rank of the team. llclf_finish finds the number in the library's message,
 * and replaces the message by one about the arrays. */
#define LLCLF_TYPE_SCATTERED 0xfffffff0u
#define LLCLF_TYPE_OF_TWO 0xfffffff1u
#define LLCLF_TYPE_NO_COUNT 0xfffffff2u

/* Whether the array's elements lie one after the other; then `size` gets their bytes. An
 * assumed-size array has -1 as its last extent, and is refused because its end is unknown. */
static inline int one_piece(const CFI_cdesc_t *array, size_t *size)
{
    CFI_index_t bytes = (CFI_index_t)array->elem_len;
    int together = 1;
    /* Most arrays are of this kind, and the loop takes longer. */
    if (array->rank == 1 && array->dim[0].sm == bytes && array->dim[0].extent >= 0) {
        *size = (size_t)(bytes * array->dim[0].extent);
        return 1;
    }
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent < 0)
            return 0;
        together &= array->dim[i].sm == bytes || array->dim[i].extent <= 1;
        bytes *= array->dim[i].extent;
    }
    *size = (size_t)bytes;
    return together || bytes == 0;
}

/* Whether an optional argument is there. A pointer that is null and an allocatable variable that is
 * not allocated count as absent (Fortran 2018, 15.5.2.12). */
static inline int is_there(const CFI_cdesc_t *array)
{
    return array != NULL && array->base_addr != NULL;
}

/* As one_piece(), also for an argument that is absent: then the address is NULL and the size 0. */
static inline int piece(const CFI_cdesc_t *array, void **address, size_t *size)
{
    int there = is_there(array);
    *address = there ? array->base_addr : NULL;
    *size = 0;
    return !there || one_piece(array, size);
}

static inline llcl_completion_t completion_of(const llcl_completion_t *completion)
{
    llcl_completion_t none = LLCL_COMPLETION_INIT;
    return completion != NULL ? *completion : none;
}

static inline uint32_t flags_of(const uint32_t *flags)
{
    return flags != NULL ? *flags : 0;
}

#endif
