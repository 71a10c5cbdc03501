/* How the subroutines of the module `llcl` end.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arrays.h"
#include <stdio.h>
#include <string.h>

/* In finish.f90; does not return. */
void llclf_error_stop(const char *sentence, size_t length);

/* The message of the calling thread's last call that this layer has refused, or about which it says
 * more than the library. */
static _Thread_local const char *refusal;

/* `refusal` counts as long as the library's message has one of these numbers: this one, of a world
 * that llclf_refuse() asks for, or LLCLF_TYPE_*. So the next failing call ends it, whether that is
 * one of this layer, one without a status, or one of C. */
#define REFUSED 0xfffffff3u

const char llclf_scattered[] = "the array's elements do not lie one after the other, or its size is unknown: "
                               "pass a contiguous section, as a(:, 1), or a(1:n)";

/* Whether the library's message says that a parameter has this value. */
static int library_names(const char *parameter, uint32_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%s is %u,", parameter, value);
    return strstr(llcl_last_error(), text) != NULL;
}

/* The message if the library has refused a collective because of its arrays (see
 * LLCLF_TYPE_SCATTERED); else NULL. */
static const char *refused_arrays(void)
{
    if (library_names("type", LLCLF_TYPE_SCATTERED))
        return llclf_scattered;
    if (library_names("type", LLCLF_TYPE_OF_TWO))
        return "`send` and `receive` are arrays of different types, or of elements of different lengths";
    if (library_names("type", LLCLF_TYPE_NO_COUNT))
        return "`count` is absent: with LLCL_COLL_IN_PLACE pass the number of elements of one rank's block";
    return NULL;
}

const char *llclf_last_error(void)
{
    int counts = refusal != NULL && (library_names("size", REFUSED) || refused_arrays() != NULL);
    return counts ? refusal : llcl_last_error();
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

void llclf_finish(const char *name, llcl_status_t answer, llcl_status_t *status)
{
    if (answer < 0)
        refusal = answer == LLCL_ERR_INVALID ? refused_arrays() : NULL;
    if ((answer != LLCL_OK && answer != LLCL_DONE) || status != NULL)
        end(name, answer, status);
}

void llclf_refuse(const char *name, const char *sentence, llcl_status_t *status)
{
    llcl_world_t *none;
    (void)llcl_world_create(REFUSED, &none);
    refusal = sentence;
    end(name, LLCL_ERR_INVALID, status);
}
