/* Programs may free handles after llcl_finalize: calls with handles of a context that has ended,
 * and with the context, answer LLCL_ERR_STATE, or NULL or 0. If this were broken, they would read
 * memory that is gone.
 * ranks: 1 2
 * modes: auto offload
 * threads: yes */
#include "shared.h"

static void ended(llcl_context_t *context, llcl_region_t *region, llcl_team_t *team,
                  llcl_team_t *part, llcl_coll_t *plan, llcl_remote_t there)
{
    llcl_write_value_params_t value = {0};
    llcl_read_params_t read = {0};
    llcl_write_params_t write = {0};
    llcl_fetch_add_params_t add = {0};
    llcl_am_params_t am = {0};
    llcl_capabilities_t about = {.struct_size = sizeof about};
    llcl_coll_info_t info = {.struct_size = sizeof info};
    llcl_region_t *other;
    llcl_team_t *another;
    uint64_t word = 0;
    value.destination = read.source = write.destination = add.target = there;
    value.size = read.size = write.size = 8;
    CHECK_STATUS(llcl_try_write_value_async(context, &value), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_try_write_async(context, &write), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_try_read_async(context, &read), LLCL_ERR_STATE);
    write.size = read.size = 100;
    CHECK_STATUS(llcl_try_write_async(context, &write), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_try_fetch_add_async(context, &add), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_try_am_async(context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_flush_all(context), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_wait_word(context, &word, 1, 1000), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 0, NULL), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_query(context, &about), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_region_allocate(context, 64, 0, &other), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_world(context, &another), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_finalize(context), LLCL_ERR_STATE);
    CHECK_EQUAL(llcl_rank(context), 0);
    CHECK_EQUAL(llcl_size(context), 0);
    CHECK_STATUS(llcl_region_free(region), LLCL_ERR_STATE);
    CHECK(llcl_region_address(region) == NULL);
    CHECK_EQUAL(llcl_region_size(region), 0);
    CHECK_EQUAL(llcl_region_remote(region, 0).key, 0);
    CHECK_STATUS(llcl_coll_start(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_test(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_wait(plan, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_query(plan, &info), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_barrier(team), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_split(part, 0, 0, &another), LLCL_ERR_STATE);
    CHECK_EQUAL(llcl_team_size(part), 0);
    CHECK_STATUS(llcl_team_free(part), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_free(team), LLCL_ERR_STATE);
}

static void run(llcl_context_t *context)
{
    llcl_region_t *region;
    llcl_team_t *team, *part;
    llcl_coll_t *plan;
    llcl_coll_params_t params = {0};
    llcl_remote_t there;
    CHECK_OK(llcl_region_allocate(context, 4096, 0, &region));
    there = llcl_region_remote(region, 0);
    CHECK_OK(llcl_team_world(context, &team));
    CHECK_OK(llcl_team_split(team, 0, 0, &part));
    params.team = team;
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_team_barrier(team));
    CHECK_OK(test_finalize(context));
    ended(context, region, team, part, plan, there);
}

TEST_MAIN(run)
