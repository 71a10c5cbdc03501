/* Broken if this fails: a program that includes llcl.h and nothing else does not compile, as C99 or
 * as C++11, with every warning an error. Compiled only. */
#include <llcl.h>

int header_alone(void);
int header_alone(void)
{
    llcl_config_t config;
    llcl_completion_t completion = llcl_no_completion();
    uint64_t failed = LLCL_WORD_FAILED;
    if (llcl_config_default(&config) != LLCL_OK || failed >> 63 != 1)
        return 1;
    return completion.kind == LLCL_COMPLETE_NONE ? 0 : 1;
}
