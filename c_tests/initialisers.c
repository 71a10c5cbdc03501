/* Broken if this fails: the LLCL_..._INIT of a struct does not carry its size, sets something else,
 * or is refused by the function that takes the struct.
 * kind: alone
 * modes: auto
 * threads: yes
 */
#include "test.h"

/* Static, so that the bytes between members are zeroes as well. */
static const llcl_completion_t completion = LLCL_COMPLETION_INIT;
static const llcl_local_t local = LLCL_LOCAL_INIT;
static const llcl_remote_t remote = LLCL_REMOTE_INIT;
static const llcl_read_params_t read_params = LLCL_READ_PARAMS_INIT;
static const llcl_write_params_t write_params = LLCL_WRITE_PARAMS_INIT;
static const llcl_write_signal_params_t signal_params = LLCL_WRITE_SIGNAL_PARAMS_INIT;
static const llcl_write_value_params_t value_params = LLCL_WRITE_VALUE_PARAMS_INIT;
static const llcl_write_small_params_t small_params = LLCL_WRITE_SMALL_PARAMS_INIT;
static const llcl_atomic_params_t atomic_params = LLCL_ATOMIC_PARAMS_INIT;
static const llcl_fetch_add_params_t add_params = LLCL_FETCH_ADD_PARAMS_INIT;
static const llcl_compare_swap_params_t swap_params = LLCL_COMPARE_SWAP_PARAMS_INIT;
static const llcl_am_params_t am_params = LLCL_AM_PARAMS_INIT;
static const llcl_am_view_t view = LLCL_AM_VIEW_INIT;
static const llcl_coll_params_t coll_params = LLCL_COLL_PARAMS_INIT;
static const llcl_strided_params_t strided_params = LLCL_STRIDED_PARAMS_INIT;
static const llcl_vector_params_t vector_params = LLCL_VECTOR_PARAMS_INIT;
static const llcl_local_span_t local_span = LLCL_LOCAL_SPAN_INIT;
static const llcl_remote_span_t remote_span = LLCL_REMOTE_SPAN_INIT;

#define ALL_ZERO(it) all_zero(&(it), sizeof(it))
static int all_zero(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0 && at[size - 1] == 0)
        size--;
    return size == 0;
}

/* Those that carry their size are taken by the functions for which they are. */
static void sized(void)
{
    llcl_config_t config = LLCL_CONFIG_INIT, expected;
    llcl_context_t *context = NULL;
    llcl_capabilities_t capabilities = LLCL_CAPABILITIES_INIT;
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    llcl_atomic_info_t atomic = LLCL_ATOMIC_INFO_INIT;
    llcl_coll_info_t coll = LLCL_COLL_INFO_INIT;
    llcl_stats_t stats = LLCL_STATS_INIT;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_region_t *region = NULL;
    llcl_coll_t *plan = NULL;
    CHECK_OK(llcl_config_default(&expected));
    CHECK(memcmp(&config, &expected, sizeof config) == 0);
    CHECK_OK(llcl_init(&config, &context));
    CHECK_OK(llcl_query(context, &capabilities));
    CHECK_OK(llcl_query_peer(context, 0, &peer));
    CHECK_OK(llcl_stats_get(context, &stats));
    CHECK_OK(llcl_region_allocate(context, 8, 0, &region));
    CHECK_OK(llcl_atomic_query(context, 0, llcl_region_remote(region, 0), LLCL_OP_ADD, LLCL_TYPE_U64, &atomic));
    CHECK_OK(llcl_team_world(context, &params.team));
    CHECK_OK(llcl_barrier_init(&params, &plan));
    CHECK_OK(llcl_coll_query(plan, &coll));
    CHECK(coll.steps == 0 || coll.queues > 0);
    CHECK_OK(llcl_finalize(context));
}

int main(void)
{
    CHECK(ALL_ZERO(completion) && ALL_ZERO(local) && ALL_ZERO(remote));
    CHECK(ALL_ZERO(read_params) && ALL_ZERO(write_params) && ALL_ZERO(signal_params));
    CHECK(ALL_ZERO(value_params) && ALL_ZERO(small_params));
    CHECK(ALL_ZERO(atomic_params) && ALL_ZERO(add_params) && ALL_ZERO(swap_params));
    CHECK(ALL_ZERO(am_params) && ALL_ZERO(view) && ALL_ZERO(coll_params));
    CHECK(ALL_ZERO(strided_params) && ALL_ZERO(vector_params) && ALL_ZERO(local_span) && ALL_ZERO(remote_span));
    sized();
    return 0;
}
