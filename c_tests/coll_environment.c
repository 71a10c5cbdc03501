/* Broken if this fails: a variable of the collectives with a value that means nothing is taken for
 * something else, instead of a refusal by llcl_init that names it.
 * kind: alone
 * modes: auto
 */
#include "test.h"

static const char *const refused[][2] = {
    {"LLCL_COLL_ENGINE", "fast"},       {"LLCL_COLL_ENGINE", "0"},
    {"LLCL_COLL_SEGMENT", "0"},         {"LLCL_COLL_SEGMENT", "many"},
    {"LLCL_COLL_MEMORY", "-1"},         {"LLCL_COLL_MEMORY", "all"},
    {"LLCL_COLL_BARRIER", "binomial"},  {"LLCL_COLL_BROADCAST", "fastest"},
    {"LLCL_COLL_REDUCE", "ring"},       {"LLCL_COLL_ALLREDUCE", "Ring"},
    {"LLCL_COLL_GATHER", "tree"},       {"LLCL_COLL_SCATTER", " "},
    {"LLCL_COLL_ALLGATHER", "chain"},   {"LLCL_COLL_ALLTOALL", "ring"},
    {"LLCL_COLL_REDUCE_SCATTER", "1"},  {"LLCL_COLL_SCAN", "linear algebra"},
    {"LLCL_COLL_EXSCAN", "ring"},       {"LLCL_COLL_TABLE", "/proc/self/status"}, /* is no table */
    {"LLCL_COLL_CACHE", "-1"},
};

int main(void)
{
    llcl_context_t *context = NULL;
    size_t i;
    for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CHECK(setenv(refused[i][0], refused[i][1], 1) == 0);
        if (llcl_init(NULL, &context) != LLCL_ERR_INVALID)
            fprintf(stderr, "%s=%s\n", refused[i][0], refused[i][1]);
        CHECK_STATUS(llcl_init(NULL, &context), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), refused[i][0]) != NULL);
        CHECK(context == NULL);
        CHECK(unsetenv(refused[i][0]) == 0);
    }
    return 0;
}
