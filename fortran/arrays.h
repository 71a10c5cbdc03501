/* What the C side of the module `llcl` shares: arrays of any type and rank come as descriptors
 * (ISO_Fortran_binding.h), so that no argument needs a temporary.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_FORTRAN_ARRAYS_H
#define LLCL_FORTRAN_ARRAYS_H
#include <ISO_Fortran_binding.h>
#include <llcl.h>

/* Ends every subroutine: stores `answer` in `status`; where that is NULL, anything but LLCL_OK and
 * LLCL_DONE stops the program. */
void llclf_finish(const char *name, llcl_status_t answer, llcl_status_t *status);

/* Ends a subroutine by LLCL_ERR_INVALID and a sentence, static text, that llcl_last_error of the
 * module then has. */
void llclf_refuse(const char *name, const char *sentence, llcl_status_t *status);

extern const char llclf_scattered[];

/* Types of a collective's parameters whose arrays cannot be used. The library refuses them, at
 * every rank of the team, and llclf_finish finds the number in its sentence and says what is wrong
 * with the arrays instead. */
#define LLCLF_TYPE_SCATTERED 0xfffffff0u
#define LLCLF_TYPE_OF_TWO 0xfffffff1u

/* How many bytes the array has, if they lie one after the other; else 0 is returned. The last
 * extent of an assumed-size array is -1: its end is unknown. */
static inline int one_piece(const CFI_cdesc_t *array, size_t *size)
{
    CFI_index_t bytes = (CFI_index_t)array->elem_len;
    int together = 1;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent < 0)
            return 0;
        together &= array->dim[i].sm == bytes || array->dim[i].extent <= 1;
        bytes *= array->dim[i].extent;
    }
    *size = (size_t)bytes;
    return together || bytes == 0;
}

/* Address and bytes of an argument that may be absent: NULL and 0 then. */
static inline int piece(const CFI_cdesc_t *array, void **address, size_t *size)
{
    *address = array == NULL ? NULL : array->base_addr;
    *size = 0;
    return array == NULL || one_piece(array, size);
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
