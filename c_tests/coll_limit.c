/* Broken if this fails: a plan that would take more memory than LLCL_COLL_MEMORY is made, or is
 * refused without the numbers or not at every rank, or what is freed does not count as free again.
 * ranks: 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#define MOST 1000u

static void run(llcl_context_t *context)
{
    struct coll_memory memory;
    struct coll_case asked = {0};
    struct coll_run *runs = calloc(MOST, sizeof *runs);
    uint32_t made[3], count, round, i;
    uint64_t limit = strtoull(getenv("LLCL_COLL_MEMORY"), NULL, 10) << 20, sum;
    int posted = coll_is_posted(context);
    CHECK(runs != NULL);
    coll_memory_make(context, ALLOCATED, (size_t)1 << 22, &memory);
    asked.team = coll_world(context);
    asked.operation = ALLREDUCE;
    asked.algorithm = "ring";
    asked.count = 2000;
    asked.type = LLCL_TYPE_U32;
    asked.op = LLCL_OP_ADD;
    for (round = 0; round < 3; round++) {
        llcl_status_t status = LLCL_OK;
        memory.used = 0;
        for (count = 0, sum = 0; count < MOST; count++) {
            llcl_coll_info_t info = {0};
            status = coll_make(&runs[count], &asked, &memory, &memory);
            memory.used = 0; /* none of them is started but the last */
            if (status != LLCL_OK)
                break;
            info.struct_size = sizeof info;
            CHECK_OK(llcl_coll_query(runs[count].plan, &info));
            sum += info.memory;
            CHECK(sum <= limit);
        }
        CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
        /* Ranks that put to other nodes need a little more than others, and may be refused
         * alone. */
        CHECK(strstr(llcl_last_error(), "LLCL_COLL_MEMORY") != NULL ||
              (posted && strstr(llcl_last_error(), "refused by rank") != NULL));
        CHECK(strpbrk(llcl_last_error(), "0123456789") != NULL);
        CHECK(count > 0 && runs[count].plan == NULL);
        coll_rounds(&runs[count - 1], 2);
        for (i = 0; i < count; i++)
            coll_drop(&runs[i]);
        coll_forget(&runs[count]);
        made[round] = count;
        fence(context);
        CHECK_EQUAL(made[round], made[0]);
    }
    printf("rank %u: %u plans\n", llcl_rank(context), made[0]);
    free(runs);
    region_drop(&memory.shared);
}

int main(void)
{
    coll_default("LLCL_COLL_MEMORY", "1");
    return test_main(run, NULL);
}
