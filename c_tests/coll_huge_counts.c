/* Broken if this fails: a count that is far too large ends the process, takes many seconds to be
 * refused, or makes the library panic: a plan's steps are made before it is known whether there is
 * memory for it. Or the refusal of a block names the wrong list. Or the count of a root in place,
 * which is ignored, counts as a block's.
 * ranks: 2
 * modes: auto
 * timeout: 60
 */
#include "coll.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("skipped: a sanitizer needs the address space");
    return TEST_SKIP_CODE;
}
#else
#include <sys/resource.h>

#define HUGE ((uint64_t)1 << 40)
#define ROOM ((uint64_t)6 << 30) /* of address space, beside what is mapped; malloc gets no more */

/* Makes a plan of memory that is not there, and does not start it. */
static llcl_status_t plan(llcl_team_t *team, int operation, const char *algorithm, uint64_t count)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *made = NULL;
    llcl_status_t status;
    params.team = team;
    params.send = llcl_local_address((void *)(uintptr_t)4096);
    params.receive = llcl_local_address((void *)(uintptr_t)((uint64_t)1 << 45));
    params.type = LLCL_TYPE_U8;
    params.op = LLCL_OP_ADD;
    params.count = count;
    params.algorithm = algorithm;
    status = coll_init(operation, 0, &params, &made);
    if (status == LLCL_OK)
        CHECK_OK(llcl_coll_free(made));
    return status;
}

static void limit_memory(void)
{
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    limit.rlim_cur = limit.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + ROOM;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void refuses(llcl_team_t *team)
{
    int operation, at;
    for (operation = 0; operation < OPERATIONS; operation++) {
        const char *const *algorithms = coll_operations[operation].algorithms;
        if (operation == BARRIER)
            continue;
        for (at = 0; algorithms[at]; at++) {
            int64_t begin = now_ns();
            llcl_status_t status = plan(team, operation, algorithms[at], HUGE);
            CHECK(status == LLCL_OK || status == LLCL_ERR_NO_MEMORY || status == LLCL_ERR_UNSUPPORTED);
            CHECK(now_ns() - begin < TEST_PATIENCE_NS / 2);
            CHECK_STATUS(plan(team, operation, algorithms[at], (uint64_t)1 << 62), LLCL_ERR_RANGE);
        }
    }
}

/* A gather in place whose root gives a wrong count of its own. */
static void ignores_the_roots(llcl_team_t *team)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    enum { COUNT = 100000 };
    uint64_t counts[COLL_MOST], offsets[COLL_MOST];
    uint32_t me = llcl_team_rank(team), ranks = llcl_team_size(team), rank;
    llcl_coll_info_t info = {0};
    llcl_coll_t *made = NULL;
    char *buffer = malloc((size_t)ranks * COUNT);
    CHECK(buffer != NULL);
    memset(buffer, (int)me + 1, (size_t)ranks * COUNT);
    for (rank = 0; rank < ranks; rank++) {
        counts[rank] = COUNT;
        offsets[rank] = (uint64_t)rank * COUNT;
    }
    params.team = team;
    params.send = params.receive = llcl_local_address(buffer);
    params.type = LLCL_TYPE_U8;
    params.count = me == 0 ? UINT64_MAX : COUNT;
    params.receive_counts = counts;
    params.receive_offsets = offsets;
    params.flags = LLCL_COLL_IN_PLACE;
    CHECK_OK(llcl_gatherv_init(&params, &made));
    info.struct_size = sizeof info;
    CHECK_OK(llcl_coll_query(made, &info));
    CHECK(info.steps < 100);
    CHECK_OK(llcl_coll_start(made));
    CHECK_OK(llcl_coll_wait(made, TEST_PATIENCE_NS));
    for (rank = 0; me == 0 && rank < ranks; rank++)
        CHECK_EQUAL((uint64_t)buffer[(size_t)(rank + 1) * COUNT - 1], rank + 1);
    CHECK_OK(llcl_coll_free(made));
    free(buffer);
}

/* The refusal of a block that is too large names its list. */
static void names_the_list(llcl_team_t *team)
{
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    uint64_t counts[COLL_MOST] = {1, 1}, large[COLL_MOST] = {1, (uint64_t)1 << 62};
    uint64_t offsets[COLL_MOST] = {0, 1};
    llcl_coll_t *made = NULL;
    char memory[2 * COLL_MOST] = {0};
    params.team = team;
    params.send = llcl_local_address(memory);
    params.receive = llcl_local_address(memory + COLL_MOST);
    params.type = LLCL_TYPE_U8;
    params.send_offsets = params.receive_offsets = offsets;
    params.send_counts = large;
    params.receive_counts = counts;
    CHECK_STATUS(llcl_alltoallv_init(&params, &made), LLCL_ERR_RANGE);
    CHECK(strstr(llcl_last_error(), "send_counts") != NULL);
    params.send_counts = counts;
    params.receive_counts = large;
    CHECK_STATUS(llcl_alltoallv_init(&params, &made), LLCL_ERR_RANGE);
    CHECK(strstr(llcl_last_error(), "receive_counts") != NULL);
}

static void run(llcl_context_t *context)
{
    llcl_team_t *team = coll_world(context);
    names_the_list(team);
    limit_memory();
    ignores_the_roots(team);
    refuses(team);
}

TEST_MAIN(run)
#endif
