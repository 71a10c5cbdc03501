/* Broken if this fails: a try function blocks while a peer that it meets for the first time has not
 * come up, or does not tell why it is refused; or the contact does not go on behind it; or
 * llcl_connect does not wait for it.
 * ranks: 3
 * threads: 3
 */
#include "am.h"

/* A file by which a rank says that it has been refused; its name is the job's. */
static const char *refused(char *path, size_t size, uint32_t rank)
{
    int job = (int)(getenv("LLCL_RANK") ? getppid() : getpid());
    CHECK(snprintf(path, size, "/tmp/connect_try.%d.%u", job, rank) < (int)size);
    return path;
}

/* The last rank comes when the others have been refused for want of it. */
static void configure(llcl_config_t *config)
{
    const char *own = getenv("LLCL_RANK");
    char path[64];
    uint32_t rank, tries;
    if ((own ? (uint32_t)atoi(own) : config->rank) != 2)
        return;
    for (rank = 0; rank < 2; rank++) {
        for (tries = 0; access(refused(path, sizeof path, rank), F_OK) != 0; tries++) {
            CHECK(tries < 1000);
            sleep_ms(10);
        }
        CHECK(unlink(path) == 0);
    }
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

/* A request with LLCL_FLAG_PARK is kept until the contact, and then done, or refused by its
 * completion. */
static void park(llcl_context_t *context, uint64_t ends[2])
{
    static uint32_t header = 7;
    llcl_write_value_params_t write = {0};
    llcl_am_params_t message = am_to(2, 9, &header, sizeof header);
    write.peer = 2;
    write.size = 8;
    write.flags = message.flags = LLCL_FLAG_PARK;
    write.on_complete = llcl_store_on(&ends[0]);
    message.on_complete = llcl_store_on(&ends[1]);
    CHECK_OK(llcl_try_write_value_async(context, &write));
    CHECK_OK(llcl_try_am_async(context, &message));
    CHECK_EQUAL(am_stats(context).parked, 2);
    CHECK_EQUAL(word_get(&ends[0]) | word_get(&ends[1]), 0);
}

/* In a callback nothing waits, so llcl_connect is refused there, and a query is answered by a
 * retry. */
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
    write.on_complete = llcl_callback(in_callback, context);
    POST(llcl_try_write_value_async(context, &write));
    CHECK_OK(llcl_flush_all(context));
}

/* What was refused for want of contact is now refused for another reason, or done. Which handlers a
 * rank behind a network has, only that rank knows. */
static void is_connected(llcl_context_t *context)
{
    CHECK_STATUS(try_write(context, 0), LLCL_ERR_KEY);
    CHECK_STATUS(try_write(context, LLCL_FLAG_DEFER), LLCL_ERR_KEY);
    CHECK_STATUS(try_message(context), is_near(context, 2) ? LLCL_ERR_NO_HANDLER : LLCL_OK);
}

static void meet_the_late(llcl_context_t *context)
{
    static const uint32_t wrong[] = {0, 3}, all[] = {2, 0, 2, 1};
    unsigned tries = 0;
    uint64_t ends[2] = {0, 0};
    char path[64];
    FILE *said;
    CHECK_STATUS(try_write(context, 0), LLCL_RETRY_CONNECTING);
    CHECK_STATUS(try_write(context, LLCL_FLAG_DEFER), LLCL_RETRY_CONNECTING);
    CHECK_STATUS(try_message(context), LLCL_RETRY_CONNECTING);
    CHECK(am_stats(context).retry_connecting == 3);
    call_back(context);
    park(context, ends);
    said = fopen(refused(path, sizeof path, llcl_rank(context)), "w");
    CHECK(said != NULL && fclose(said) == 0);
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
    is_connected(context);
    CHECK_OK(llcl_flush(context, 2));
    CHECK_EQUAL(word_get(&ends[0]), (uint64_t)(int64_t)LLCL_ERR_KEY);
    CHECK_EQUAL(word_get(&ends[1]), (uint64_t)(int64_t)LLCL_ERR_NO_HANDLER);
    CHECK_OK(llcl_connect(context, NULL, 77));
}

static void run(llcl_context_t *context)
{
    if (llcl_rank(context) < 2)
        meet_the_late(context);
    else
        CHECK_OK(llcl_connect(context, NULL, 0));
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

TEST_MAIN_CONFIG(run, configure)
