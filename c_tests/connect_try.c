/* Broken if this fails: a try function blocks while a peer that it meets for the first time has not come up, or
 * does not tell why it is refused; or the contact does not go on behind it; or llcl_connect does not wait for it.
 * ranks: 3
 * threads: 3
 */
#include "am.h"

#define LATE_MS 500
#define AT_ONCE_NS INT64_C(100000000)

/* The last rank comes late. */
static void configure(llcl_config_t *config)
{
    const char *rank = getenv("LLCL_RANK");
    if ((rank ? (uint32_t)atoi(rank) : config->rank) == 2)
        sleep_ms(LATE_MS);
}

static llcl_status_t try_write(llcl_context_t *context, uint32_t flags)
{
    llcl_write_value_params_t write = {0};
    write.peer = 2;
    write.size = 8;
    write.flags = flags;
    write.on_complete = llcl_no_completion();
    return llcl_try_write_value_async(context, &write);
}

static llcl_status_t try_message(llcl_context_t *context)
{
    llcl_am_params_t message = am_to(2, 9, NULL, 0);
    message.on_local = message.on_complete = llcl_no_completion();
    return llcl_try_am_async(context, &message);
}

/* In a callback nothing waits, so llcl_connect is refused there, and a query is answered by a retry. */
static void in_callback(void *data, llcl_status_t status)
{
    llcl_context_t *context = data;
    llcl_peer_info_t info = {0};
    CHECK_OK(status);
    info.struct_size = sizeof info;
    CHECK_STATUS(llcl_connect(context, NULL, 0), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_query_peer(context, 2, &info), LLCL_RETRY_CONNECTING);
}

static void call_back(llcl_context_t *context)
{
    llcl_region_t *own = NULL;
    llcl_write_value_params_t write = {0};
    CHECK_OK(llcl_region_allocate(context, 64, 0, &own));
    write.peer = llcl_rank(context);
    write.size = 8;
    write.destination = llcl_region_remote(own, 0);
    write.on_complete = llcl_call(in_callback, context);
    POST(llcl_try_write_value_async(context, &write));
    CHECK_OK(llcl_flush_all(context));
}

/* What was refused for want of contact is now refused for another reason, or done. */
static void is_connected(llcl_context_t *context)
{
    CHECK_STATUS(try_write(context, 0), LLCL_ERR_KEY);
    CHECK_STATUS(try_write(context, LLCL_FLAG_DEFER), LLCL_ERR_KEY);
    CHECK_STATUS(try_message(context), LLCL_ERR_NO_HANDLER);
}

static void meet_the_late(llcl_context_t *context)
{
    static const uint32_t wrong[] = {0, 3}, all[] = {2, 0, 2, 1};
    int64_t begin = now_ns();
    unsigned tries = 0;
    CHECK_STATUS(try_write(context, 0), LLCL_RETRY_CONNECTING);
    CHECK_STATUS(try_write(context, LLCL_FLAG_DEFER), LLCL_RETRY_CONNECTING);
    CHECK_STATUS(try_message(context), LLCL_RETRY_CONNECTING);
    call_back(context);
    CHECK(now_ns() - begin < AT_ONCE_NS);
    CHECK(am_stats(context).retry_connecting == 3);
    CHECK_STATUS(llcl_connect(context, wrong, 2), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_connect(NULL, all, 4), LLCL_ERR_INVALID);
    CHECK_OK(llcl_connect(context, all, 0));
    if (llcl_rank(context) == 0) {
        CHECK_OK(llcl_connect(context, all, 4));
    } else {
        /* Without another word of ours. */
        while (try_message(context) == LLCL_RETRY_CONNECTING && ++tries < 1000)
            sleep_ms(10);
    }
    CHECK(now_ns() - begin > AT_ONCE_NS);
    is_connected(context);
    CHECK_OK(llcl_connect(context, NULL, 77));
}

static void run(llcl_context_t *context)
{
    if (llcl_rank(context) < 2)
        meet_the_late(context);
    else
        CHECK_OK(llcl_connect(context, NULL, 0));
    CHECK_OK(llcl_exchange(context, NULL, 0, NULL));
}

TEST_MAIN_CONFIG(run, configure)
