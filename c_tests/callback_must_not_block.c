/* Broken if this fails: a blocking call inside a callback locks the lane up, instead of answering
 * LLCL_ERR_STATE; or the message advises a try form that the function does not have; or what a
 * callback may do (try, query) is refused.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "wild.h"

struct inside {
    llcl_context_t *context;
    struct wild wild;
    struct tally posted;
    uint64_t done;
};

/* A function that has no try form. */
static void refused(llcl_status_t status)
{
    CHECK_STATUS(status, LLCL_ERR_STATE);
    CHECK(strstr(llcl_last_error(), "this function waits") && !strstr(llcl_last_error(), "try"));
}

static void fire(void *data, llcl_status_t status)
{
    struct inside *in = data;
    struct wild wild = in->wild;
    llcl_context_t *context = in->context;
    llcl_capabilities_t found = {0};
    uint64_t word = 0;
    unsigned char byte[8], all[16];
    CHECK_OK(status);
    wild_must_not_wait(context, &wild);
    refused(llcl_flush(context, in->wild.peer));
    refused(llcl_flush_all(context));
    refused(llcl_wait_word(context, &word, 1, 1000000));
    refused(llcl_allgather_bytes(context, byte, 1, all));
    refused(llcl_finalize(context));
    refused(llcl_progress(context));
    refused(llcl_connect(context, NULL, 0));
    refused(llcl_barrier(context));
    found.struct_size = sizeof found;
    CHECK_OK(llcl_query(context, &found));
    CHECK_OK(llcl_peer_alive(context, in->wild.peer));
    wild.operation = WILD_VALUE;
    wild.tier = TIER_TRY;
    wild.on_complete = count_in(&in->posted);
    status = wild_post(context, &wild);
    CHECK(status >= 0);
    word_set(&in->done, status == LLCL_OK ? 1 : 2);
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), flags;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        for (flags = 0; flags <= LLCL_FLAG_DEFER; flags++) {
            struct shared target, mine;
            struct inside in;
            struct wild wild;
            memset(&in, 0, sizeof in);
            share(context, kind, 4096, &target);
            region_make(context, ALLOCATED, 4096, &mine);
            in.context = context;
            in.wild.peer = peer;
            in.wild.flags = flags;
            in.wild.local = llcl_region_local(mine.region, 0);
            in.wild.memory = mine.words;
            in.wild.remote = remote_at(&target, peer, 0);
            in.wild.signal = remote_at(&target, peer, 64);
            wild = in.wild;
            wild.operation = WILD_WRITE;
            wild.tier = TIER_TRY;
            wild.on_complete = llcl_callback(fire, &in);
            POST(wild_post(context, &wild));
            AWAIT(&in.done, 1);
            if (in.done == 1)
                AWAIT(&in.posted.fired, 1);
            CHECK_EQUAL(in.posted.failed, 0);
            CHECK_OK(llcl_flush_all(context));
            share_end(context, &target);
            region_drop(&mine);
        }
    }
}

TEST_MAIN(run)
