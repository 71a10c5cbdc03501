/* Broken if this fails: a function of llcl.h follows a pointer that is NULL or misaligned, takes a
 * parameter that it must refuse, refuses it with another status than the documented one or without
 * a sentence that begins with its name, or writes a result all the same. c_tests/coverage fails if
 * this file does not call some function.
 * ranks: 1
 * threads: yes
 */
#include "test.h"

static int odd_calls;

/* The sentence begins with "llcl_" and says more than that. */
static void refused(const char *file, int line, const char *call, llcl_status_t status, llcl_status_t expected)
{
    test_status(file, line, call, "the refusal", status, expected);
    if (strncmp(llcl_last_error(), "llcl_", 5) != 0 || strchr(llcl_last_error(), ':') == NULL)
        test_fail(file, line, call);
    odd_calls++;
}

#define REFUSED_AS(call, expected) refused(__FILE__, __LINE__, #call, (call), (expected))
#define REFUSED(call) REFUSED_AS(call, LLCL_ERR_INVALID)

/* One byte behind: misaligned for every struct. */
static void *misaligned(void *pointer)
{
    return (char *)pointer + 1;
}

/* A function that posts a request: no context or parameters, and wrong fields that all structs
 * have. */
#define POSTS(name, type)                                       \
    do {                                                        \
        type it;                                                \
        memset(&it, 0, sizeof it);                              \
        REFUSED(name(NULL, &it));                               \
        REFUSED(name(context, NULL));                           \
        REFUSED(name(NULL, NULL));                              \
        it.peer = llcl_size(context);                           \
        REFUSED(name(context, &it));                            \
        it.peer = UINT32_MAX;                                   \
        REFUSED(name(context, &it));                            \
        it.peer = 0;                                            \
        it.flags = 0x80000000u;                                 \
        REFUSED(name(context, &it));                            \
        it.flags = 0;                                           \
        it.on_complete.kind = LLCL_COMPLETE_ADD + 1;            \
        REFUSED(name(context, &it));                            \
        it.on_complete.kind = LLCL_COMPLETE_CALL; /* of NULL */ \
        REFUSED(name(context, &it));                            \
    } while (0)

static void requests(llcl_context_t *context)
{
    POSTS(llcl_try_read_async, llcl_read_params_t);
    POSTS(llcl_read_async, llcl_read_params_t);
    POSTS(llcl_read, llcl_read_params_t);
    POSTS(llcl_try_write_async, llcl_write_params_t);
    POSTS(llcl_write_async, llcl_write_params_t);
    POSTS(llcl_write, llcl_write_params_t);
    POSTS(llcl_try_write_signal_async, llcl_write_signal_params_t);
    POSTS(llcl_write_signal_async, llcl_write_signal_params_t);
    POSTS(llcl_write_signal, llcl_write_signal_params_t);
    POSTS(llcl_try_write_value_async, llcl_write_value_params_t);
    POSTS(llcl_write_value_async, llcl_write_value_params_t);
    POSTS(llcl_write_value, llcl_write_value_params_t);
    POSTS(llcl_try_write_small_async, llcl_write_small_params_t);
    POSTS(llcl_write_small_async, llcl_write_small_params_t);
    POSTS(llcl_write_small, llcl_write_small_params_t);
    POSTS(llcl_try_atomic_async, llcl_atomic_params_t);
    POSTS(llcl_atomic_async, llcl_atomic_params_t);
    POSTS(llcl_atomic, llcl_atomic_params_t);
    POSTS(llcl_try_fetch_add_async, llcl_fetch_add_params_t);
    POSTS(llcl_fetch_add_async, llcl_fetch_add_params_t);
    POSTS(llcl_fetch_add, llcl_fetch_add_params_t);
    POSTS(llcl_try_compare_swap_async, llcl_compare_swap_params_t);
    POSTS(llcl_compare_swap_async, llcl_compare_swap_params_t);
    POSTS(llcl_compare_swap, llcl_compare_swap_params_t);
    POSTS(llcl_try_write_strided_async, llcl_strided_params_t);
    POSTS(llcl_write_strided_async, llcl_strided_params_t);
    POSTS(llcl_write_strided, llcl_strided_params_t);
    POSTS(llcl_try_read_strided_async, llcl_strided_params_t);
    POSTS(llcl_read_strided_async, llcl_strided_params_t);
    POSTS(llcl_read_strided, llcl_strided_params_t);
    POSTS(llcl_try_writev_async, llcl_vector_params_t);
    POSTS(llcl_writev_async, llcl_vector_params_t);
    POSTS(llcl_writev, llcl_vector_params_t);
    POSTS(llcl_try_readv_async, llcl_vector_params_t);
    POSTS(llcl_readv_async, llcl_vector_params_t);
    POSTS(llcl_readv, llcl_vector_params_t);
    POSTS(llcl_try_am_async, llcl_am_params_t);
    POSTS(llcl_am_async, llcl_am_params_t);
    POSTS(llcl_am, llcl_am_params_t);
#define llcl_am_in_time(context, params) llcl_am_within(context, params, 1000000)
    POSTS(llcl_am_in_time, llcl_am_params_t);
}

/* A collective in its three forms: no parameters, misaligned ones, no team, wrong fields that every
 * operation refuses. */
#define COLLECTIVE(name)                                        \
    do {                                                        \
        llcl_coll_params_t it = LLCL_COLL_PARAMS_INIT;          \
        llcl_coll_t *plan = untouched;                          \
        REFUSED(llcl_##name##_init(NULL, &plan));               \
        REFUSED(llcl_##name##_init(misaligned(&it), &plan));    \
        REFUSED(llcl_##name##_init(&it, &plan));                \
        REFUSED(llcl_##name##_async(NULL));                     \
        REFUSED(llcl_##name##_async(misaligned(&it)));          \
        REFUSED(llcl_##name##_async(&it));                      \
        it.team = misaligned(team);                             \
        REFUSED(llcl_##name##_init(&it, &plan));                \
        REFUSED(llcl_##name##_async(&it));                      \
        it.team = team;                                         \
        REFUSED(llcl_##name##_init(&it, NULL));                 \
        it.flags = 0x80000000u;                                 \
        REFUSED(llcl_##name##_init(&it, &plan));                \
        REFUSED(llcl_##name##_async(&it));                      \
        it.flags = 0;                                           \
        it.depth = 65;                                          \
        CHECK(llcl_##name##_init(&it, &plan) < 0);              \
        CHECK(llcl_##name##_async(&it) < 0);                    \
        CHECK(plan == untouched);                               \
    } while (0)

/* The blocking form; llcl_barrier has a context instead. */
#define BLOCKING(name)                                          \
    do {                                                        \
        llcl_coll_params_t it = LLCL_COLL_PARAMS_INIT;          \
        COLLECTIVE(name);                                       \
        REFUSED(llcl_##name(NULL));                             \
        REFUSED(llcl_##name(misaligned(&it)));                  \
        REFUSED(llcl_##name(&it));                              \
        it.team = team;                                         \
        it.flags = 0x80000000u;                                 \
        REFUSED(llcl_##name(&it));                              \
        it.flags = 0;                                           \
        it.on_complete.kind = LLCL_COMPLETE_CALL;               \
        REFUSED(llcl_##name(&it));                              \
    } while (0)

static void collectives(llcl_team_t *team)
{
    llcl_coll_t *untouched = (llcl_coll_t *)(void *)&odd_calls;
    BLOCKING(broadcast);
    BLOCKING(reduce);
    BLOCKING(allreduce);
    BLOCKING(gather);
    BLOCKING(gatherv);
    BLOCKING(scatter);
    BLOCKING(scatterv);
    BLOCKING(allgather);
    BLOCKING(allgatherv);
    BLOCKING(alltoall);
    BLOCKING(alltoallv);
    BLOCKING(reduce_scatter);
    BLOCKING(reduce_scatterv);
    BLOCKING(scan);
    BLOCKING(exscan);
    COLLECTIVE(barrier);
    REFUSED(llcl_barrier(NULL));
    REFUSED(llcl_team_barrier(NULL));
    REFUSED(llcl_team_barrier(misaligned(team)));
}

static void plans(llcl_team_t *team)
{
    llcl_coll_params_t it = LLCL_COLL_PARAMS_INIT;
    llcl_coll_info_t info = LLCL_COLL_INFO_INIT;
    llcl_coll_t *plan = NULL;
    llcl_local_t nowhere = LLCL_LOCAL_INIT;
    it.team = team;
    CHECK_OK(llcl_barrier_init(&it, &plan));
    REFUSED(llcl_coll_start(NULL));
    REFUSED(llcl_coll_start(misaligned(plan)));
    REFUSED(llcl_coll_start_with(NULL, nowhere, nowhere));
    REFUSED(llcl_coll_start_with(misaligned(plan), nowhere, nowhere));
    REFUSED(llcl_coll_test(NULL));
    REFUSED(llcl_coll_test(misaligned(plan)));
    REFUSED(llcl_coll_wait(NULL, 0));
    REFUSED(llcl_coll_wait(misaligned(plan), -1));
    REFUSED(llcl_coll_query(NULL, &info));
    REFUSED(llcl_coll_query(plan, NULL));
    info.struct_size = 1;
    REFUSED(llcl_coll_query(plan, &info));
    REFUSED(llcl_coll_free(NULL));
    REFUSED(llcl_coll_free(misaligned(plan)));
    CHECK_OK(llcl_coll_free(plan));
}

static void teams(llcl_context_t *context, llcl_team_t *team)
{
    uint32_t ranks[2] = {0, 0};
    llcl_team_t *other = team;
    REFUSED(llcl_team_world(NULL, &other));
    REFUSED(llcl_team_world(context, NULL));
    REFUSED(llcl_team_split(NULL, 0, 0, &other));
    REFUSED(llcl_team_split(misaligned(team), 0, 0, &other));
    REFUSED(llcl_team_split(team, 0, 0, NULL));
    REFUSED(llcl_team_create(NULL, ranks, 1, &other));
    REFUSED(llcl_team_create(context, NULL, 1, &other));
    REFUSED(llcl_team_create(context, ranks, 0, &other));
    REFUSED(llcl_team_create(context, ranks, 2, &other));
    REFUSED(llcl_team_create(context, ranks, UINT32_MAX, &other));
    REFUSED(llcl_team_create(context, ranks, 1, NULL));
    ranks[0] = UINT32_MAX;
    REFUSED_AS(llcl_team_create(context, ranks, 1, &other), LLCL_ERR_RANGE);
    REFUSED(llcl_team_free(NULL));
    REFUSED(llcl_team_free(misaligned(team)));
    CHECK(other == team);
    CHECK_EQUAL(llcl_team_rank(NULL), UINT32_MAX);
    CHECK_EQUAL(llcl_team_size(NULL), 0);
    CHECK_EQUAL(llcl_team_peer(NULL, 0), UINT32_MAX);
    CHECK_EQUAL(llcl_team_peer(team, llcl_team_size(team)), UINT32_MAX);
    CHECK_EQUAL(llcl_team_find(NULL, 0), UINT32_MAX);
    CHECK_EQUAL(llcl_team_find(team, UINT32_MAX), UINT32_MAX);
}

static void regions(llcl_context_t *context)
{
    llcl_region_t *region = NULL, *other = NULL;
    llcl_remote_t remotes[1], nowhere = LLCL_REMOTE_INIT;
    void *alias = NULL, *memory = &nowhere;
    CHECK_OK(llcl_region_allocate(context, 4096, 0, &region));
    REFUSED(llcl_region_allocate(NULL, 8, 0, &other));
    REFUSED(llcl_region_allocate(misaligned(context), 8, 0, &other));
    REFUSED(llcl_region_allocate(context, 8, 0, NULL));
    REFUSED(llcl_region_allocate(context, 8, 0x80000000u, &other));
    REFUSED(llcl_region_allocate_shared(NULL, 8, &other, remotes));
    REFUSED(llcl_region_allocate_shared(context, 8, NULL, remotes));
    REFUSED(llcl_region_allocate_shared(context, 8, &other, NULL));
    REFUSED(llcl_region_allocate_at(NULL, NULL, 8, 0, &other));
    REFUSED(llcl_region_allocate_at(context, misaligned(NULL), 8, 0, &other));
    REFUSED(llcl_region_allocate_at(context, NULL, 8, 0x80000000u, &other));
    REFUSED(llcl_region_allocate_at(context, NULL, 8, 0, NULL));
    REFUSED(llcl_region_register(NULL, memory, 8, 0, &other));
    REFUSED(llcl_region_register(context, NULL, 8, 0, &other));
    REFUSED(llcl_region_register(context, memory, 8, 0x80000000u, &other));
    REFUSED(llcl_region_register(context, memory, 8, 0, NULL));
    REFUSED(llcl_region_alias(NULL, 0, 4096, NULL, LLCL_ACCESS_READ, &alias));
    REFUSED(llcl_region_alias(region, 1, 4096, NULL, LLCL_ACCESS_READ, &alias));
    REFUSED(llcl_region_alias(region, 0, 4096, misaligned(NULL), LLCL_ACCESS_READ, &alias));
    REFUSED(llcl_region_alias(region, 0, 4096, NULL, 0x80000000u, &alias));
    REFUSED(llcl_region_alias(region, 0, 4096, NULL, LLCL_ACCESS_READ, NULL));
    REFUSED_AS(llcl_region_alias(region, 0, SIZE_MAX, NULL, LLCL_ACCESS_READ, &alias), LLCL_ERR_RANGE);
    REFUSED(llcl_region_unalias(NULL, memory));
    REFUSED(llcl_region_unalias(region, NULL));
    REFUSED(llcl_region_unalias(region, memory));
    REFUSED(llcl_region_free(NULL));
    REFUSED(llcl_region_free(misaligned(region)));
    CHECK(other == NULL && alias == NULL);
    CHECK(llcl_region_address(NULL) == NULL);
    CHECK_EQUAL(llcl_region_size(NULL), 0);
    CHECK_EQUAL(llcl_region_local(NULL, 8).key, 0);
    CHECK_EQUAL(llcl_region_remote(NULL, 8).key, 0);
    CHECK_EQUAL(llcl_at(nowhere, UINT64_MAX).key, 0);
    CHECK_EQUAL(llcl_local_at(llcl_region_local(NULL, 0), UINT64_MAX).key, 0);
    CHECK_EQUAL(llcl_local_address(NULL).offset, 0);
    CHECK(llcl_remote_pointer(NULL, 0, nowhere, 8) == NULL);
    CHECK(llcl_remote_pointer(context, UINT32_MAX, nowhere, 8) == NULL);
    CHECK(llcl_remote_pointer(context, 0, nowhere, SIZE_MAX) == NULL);
    CHECK_OK(llcl_region_free(region));
}

static void waits(llcl_context_t *context)
{
    uint64_t words[2] = {0, 0};
    llcl_awaited_t awaited = LLCL_AWAITED_INIT;
    uint32_t which = 7;
    int32_t descriptor = 7;
    REFUSED(llcl_flush(NULL, 0));
    REFUSED(llcl_flush(context, UINT32_MAX));
    REFUSED(llcl_flush_all(NULL));
    REFUSED(llcl_flush_within(NULL, 0, 0));
    REFUSED(llcl_flush_within(context, UINT32_MAX - 1, 0));
    REFUSED(llcl_wait_word(NULL, words, 1, 0));
    REFUSED(llcl_wait_word(context, NULL, 1, 0));
    REFUSED(llcl_wait_word(context, misaligned(words), 1, 0));
    REFUSED(llcl_wait_word_from(NULL, words, 1, 0, 0));
    REFUSED(llcl_wait_word_from(context, NULL, 1, 0, 0));
    REFUSED(llcl_wait_word_from(context, misaligned(words), 1, 0, 0));
    REFUSED(llcl_wait_word_from(context, words, 1, 0, UINT32_MAX));
    REFUSED(llcl_wait_any(NULL, &awaited, 1, 0, 0, &which));
    REFUSED(llcl_wait_any(context, NULL, 1, 0, 0, &which));
    REFUSED(llcl_wait_any(context, &awaited, 1, 0, 0, &which));
    awaited.word = misaligned(words);
    REFUSED(llcl_wait_any(context, &awaited, 1, 0, 0, &which));
    REFUSED(llcl_wait_fd(context, &awaited, 1, 0, &descriptor));
    awaited.word = words;
    REFUSED(llcl_wait_any(context, &awaited, 1, 0x80000000u, 0, &which));
    REFUSED(llcl_wait_fd(NULL, &awaited, 1, 0, &descriptor));
    REFUSED(llcl_wait_fd(context, NULL, 1, 0, &descriptor));
    REFUSED(llcl_wait_fd(context, &awaited, 1, 0x80000000u, &descriptor));
    REFUSED(llcl_wait_fd(context, &awaited, 1, 0, NULL));

    REFUSED(llcl_wake(context, UINT32_MAX));
    REFUSED(llcl_wake(NULL, 0));
    REFUSED(llcl_progress(NULL));
    REFUSED(llcl_progress(misaligned(context)));
    CHECK(which == 7 && descriptor == 7);
}

static void messages(llcl_context_t *context)
{
    llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
    llcl_am_view_t view = LLCL_AM_VIEW_INIT;
    uint32_t handled = 7;
    REFUSED(llcl_am_register(NULL, 1, NULL, NULL));
    REFUSED(llcl_am_register(context, LLCL_AM_IDS, NULL, NULL));
    REFUSED(llcl_am_poll(NULL, 1, &handled));
    REFUSED(llcl_am_poll(misaligned(context), 1, &handled));
    REFUSED(llcl_am_wait(NULL, 0));
    REFUSED(llcl_am_view(NULL, &view));
    REFUSED(llcl_am_respond(NULL, &am));
    REFUSED(llcl_am_reply(NULL, &am, 1));
    CHECK(llcl_am_retain(NULL) == NULL);
    REFUSED(llcl_am_release(NULL));
    CHECK_EQUAL(handled, 7);
}

static void queries(llcl_context_t *context)
{
    llcl_capabilities_t capabilities = LLCL_CAPABILITIES_INIT;
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    llcl_atomic_info_t atomic = LLCL_ATOMIC_INFO_INIT;
    llcl_stats_t stats = LLCL_STATS_INIT;
    llcl_remote_t nowhere = LLCL_REMOTE_INIT;
    uint32_t peers[1] = {UINT32_MAX};
    unsigned char bytes[8];
    REFUSED(llcl_query(NULL, &capabilities));
    REFUSED(llcl_query(context, NULL));
    REFUSED(llcl_query(context, misaligned(&capabilities)));
    REFUSED(llcl_query_peer(NULL, 0, &peer));
    REFUSED(llcl_query_peer(context, 0, NULL));
    REFUSED(llcl_query_peer(context, UINT32_MAX, &peer));
    REFUSED(llcl_stats_get(NULL, &stats));
    REFUSED(llcl_stats_get(context, NULL));
    REFUSED(llcl_atomic_query(NULL, 0, nowhere, LLCL_OP_ADD, LLCL_TYPE_U64, &atomic));
    REFUSED(llcl_atomic_query(context, UINT32_MAX, nowhere, LLCL_OP_ADD, LLCL_TYPE_U64, &atomic));
    REFUSED(llcl_atomic_query(context, 0, nowhere, LLCL_OP_ADD, LLCL_TYPE_U64, NULL));
    capabilities.struct_size = 1;
    REFUSED(llcl_query(context, &capabilities));
    peer.struct_size = UINT64_MAX;
    REFUSED(llcl_query_peer(context, 0, &peer));
    stats.struct_size = 0;
    REFUSED(llcl_stats_get(context, &stats));
    atomic.struct_size = 0;
    REFUSED(llcl_atomic_query(context, 0, nowhere, LLCL_OP_ADD, LLCL_TYPE_U64, &atomic));
    REFUSED(llcl_peer_alive(NULL, 0));
    REFUSED(llcl_peer_alive(context, UINT32_MAX));
    REFUSED(llcl_connect(NULL, NULL, 0));
    REFUSED(llcl_connect(context, peers, 1));
    REFUSED(llcl_allgather_bytes(NULL, bytes, 8, bytes));
    REFUSED(llcl_allgather_bytes(context, NULL, 8, bytes));
    REFUSED(llcl_allgather_bytes(context, bytes, 8, NULL));
    REFUSED(llcl_allgather_bytes_within(NULL, bytes, 8, bytes, 0));
    REFUSED(llcl_allgather_bytes_within(context, NULL, 8, bytes, -1));
    REFUSED(llcl_allgather_bytes_within(context, bytes, 8, NULL, -1));
    CHECK_EQUAL(llcl_rank(NULL), 0);
    CHECK_EQUAL(llcl_size(NULL), 0);
}

static void lives(llcl_context_t *context)
{
    llcl_config_t config = LLCL_CONFIG_INIT, wrong = LLCL_CONFIG_INIT;
    llcl_context_t *other = NULL;
    llcl_world_t *world = NULL;
    REFUSED(llcl_config_default(NULL));
    REFUSED(llcl_world_create(0, &world));
    REFUSED(llcl_world_create(UINT32_MAX, &world));
    REFUSED(llcl_world_create(1, NULL));
    REFUSED(llcl_world_free(NULL));
    REFUSED(llcl_init(misaligned(&config), &other));
    REFUSED(llcl_init(&config, NULL));
    wrong.struct_size = 1;
    REFUSED(llcl_init(&wrong, &other));
    REFUSED(llcl_context_duplicate(NULL, &config, &other));
    REFUSED(llcl_context_duplicate(context, &config, NULL));
    REFUSED(llcl_context_duplicate(context, &wrong, &other));
    REFUSED(llcl_context_duplicate(context, misaligned(&config), &other));
    REFUSED(llcl_finalize(NULL));
    REFUSED(llcl_finalize(misaligned(context)));
    REFUSED(llcl_finalize_within(NULL, 0));
    REFUSED(llcl_finalize_within(misaligned(context), -1));
    CHECK(other == NULL && world == NULL);
}

/* Functions without a refusal: any value will do. */
static void values(void)
{
    CHECK(llcl_status_string(INT32_MIN) != NULL && llcl_status_string(INT32_MAX) != NULL);
    CHECK(llcl_last_error() != NULL);
    llcl_must_succeed(LLCL_OK, NULL, NULL, 0);
    llcl_set_last_error(NULL);
    CHECK_EQUAL(llcl_no_completion().kind, LLCL_COMPLETE_NONE);
    CHECK(llcl_callback(NULL, NULL).target == NULL);
    CHECK(llcl_store_on(NULL).target == NULL);
    CHECK(llcl_add_on(NULL).target == NULL);
    CHECK(llcl_version() != 0 && strlen(llcl_version_string()) >= 5);
}

static void run(llcl_context_t *context)
{
    llcl_team_t *team;
    CHECK_OK(llcl_team_world(context, &team));
    requests(context);
    collectives(team);
    plans(team);
    teams(context, team);
    regions(context);
    waits(context);
    messages(context);
    queries(context);
    lives(context);
    values();
    CHECK(odd_calls > 700);
    CHECK_OK(llcl_team_free(team));
}

TEST_MAIN(run)
