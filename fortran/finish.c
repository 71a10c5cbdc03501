/* How the subroutines of the module `llcl` end.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arrays.h"
#include <stdio.h>
#include <string.h>

/* In finish.f90; does not return. */
void llclf_error_stop(const char *sentence, size_t length);

/* The message of the calling thread's last failed call if this layer has refused it. NULL: the
 * library has the message. */
static _Thread_local const char *refusal;

const char llclf_scattered[] = "the array's elements do not lie one after the other, or its size is unknown: "
                               "pass a contiguous section, as a(:, 1), or a(1:n)";

const char *llclf_last_error(void)
{
    return refusal != NULL ? refusal : llcl_last_error();
}

static void end(const char *name, llcl_status_t answer, llcl_status_t *status)
{
    char text[1024];
    int length;
    if (status != NULL) {
        *status = answer;
        return;
    }
    length = snprintf(text, sizeof text, "%s: %s", name,
                      answer > 0 ? llcl_status_string(answer) : llclf_last_error());
    llclf_error_stop(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* The message if the library has refused a collective because of its arrays (see
 * LLCLF_TYPE_SCATTERED); else NULL. */
static const char *refused_arrays(void)
{
    char type[32];
    snprintf(type, sizeof type, "type is %u,", LLCLF_TYPE_SCATTERED);
    if (strstr(llcl_last_error(), type) != NULL)
        return llclf_scattered;
    snprintf(type, sizeof type, "type is %u,", LLCLF_TYPE_OF_TWO);
    return strstr(llcl_last_error(), type) != NULL
               ? "`send` and `receive` are arrays of different types, or of elements of different lengths"
               : NULL;
}

void llclf_finish(const char *name, llcl_status_t answer, llcl_status_t *status)
{
    if (answer < 0)
        refusal = answer == LLCL_ERR_INVALID ? refused_arrays() : NULL;
    if ((answer != LLCL_OK && answer != LLCL_DONE) || status != NULL)
        end(name, answer, status);
}

void llclf_refuse(const char *name, const char *sentence, llcl_status_t *status)
{
    refusal = sentence;
    end(name, LLCL_ERR_INVALID, status);
}
