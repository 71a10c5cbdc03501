/* Programs may free handles after llcl_finalize: calls with handles of a context that has ended,
 * and with the context, answer LLCL_ERR_STATE, or NULL or 0. If this were broken, they would read
 * memory that is gone.
 * ranks: 1 2
 * modes: auto offload
 * threads: yes */
#include "wild.h"

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

static void handler(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
}

/* All one-sided operations in all forms. */
static void posts_after(llcl_context_t *context, llcl_remote_t there)
{
    static llcl_status_t (*const strided[])(llcl_context_t *, const llcl_strided_params_t *) = {
        llcl_try_write_strided_async, llcl_write_strided_async, llcl_write_strided,
        llcl_try_read_strided_async, llcl_read_strided_async, llcl_read_strided};
    static llcl_status_t (*const lists[])(llcl_context_t *, const llcl_vector_params_t *) = {
        llcl_try_writev_async, llcl_writev_async, llcl_writev,
        llcl_try_readv_async, llcl_readv_async, llcl_readv};
    llcl_strided_params_t box;
    llcl_vector_params_t list = LLCL_VECTOR_PARAMS_INIT;
    llcl_atomic_info_t info = LLCL_ATOMIC_INFO_INIT;
    struct wild wild = {0};
    uint64_t word[2] = {0};
    size_t i;
    wild.local = llcl_local_address(word);
    wild.memory = word;
    wild.remote = wild.signal = there;
    WILD_REFUSED(context, &wild, LLCL_ERR_STATE);
    box = box_of_a_word(wild.local, there);
    for (i = 0; i < sizeof strided / sizeof strided[0]; i++)
        CHECK_STATUS(strided[i](context, &box), LLCL_ERR_STATE);
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++)
        CHECK_STATUS(lists[i](context, &list), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_atomic_query(context, 0, there, LLCL_OP_ADD, LLCL_TYPE_U64, &info), LLCL_ERR_STATE);
}

/* Waits, and what makes something. */
static void calls_after(llcl_context_t *context, llcl_region_t *region, llcl_team_t *team)
{
    static uint32_t ranks[1];
    uint64_t word = 0;
    llcl_awaited_t awaited = LLCL_AWAITED_INIT;
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    llcl_coll_params_t barrier = LLCL_COLL_PARAMS_INIT;
    llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
    llcl_context_t *context2;
    llcl_region_t *region2;
    llcl_team_t *team2;
    llcl_coll_t *plan;
    void *alias;
    int32_t descriptor;
    awaited.word = &word;
    awaited.at_least = 1;
    CHECK_STATUS(llcl_wait_word_from(context, &word, 1, 1000, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_wait_any(context, &awaited, 1, 0, 1000, NULL), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_wait_fd(context, &awaited, 1, 0, &descriptor), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_wake(context, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_progress(context), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_flush(context, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_flush_within(context, 0, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_register(context, 1, handler, NULL), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_poll(context, 1, NULL), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_wait(context, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_within(context, &am, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_connect(context, NULL, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_query_peer(context, 0, &peer), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_allgather_bytes_within(context, NULL, 0, NULL, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_finalize_within(context, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_barrier(context), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_context_duplicate(context, NULL, &context2), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_region_register(context, &word, sizeof word, 0, &region2), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_region_alias(region, 0, 4096, NULL, 0, &alias), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_team_create(context, ranks, 1, &team2), LLCL_ERR_STATE);
    barrier.team = team;
    CHECK_STATUS(llcl_barrier_init(&barrier, &plan), LLCL_ERR_STATE);
    barrier.on_complete = llcl_store_on(&word);
    CHECK_STATUS(llcl_barrier_async(&barrier), LLCL_ERR_STATE);
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
    posts_after(context, there);
    calls_after(context, region, team);
    ended(context, region, team, part, plan, there);
}

TEST_MAIN(run)
