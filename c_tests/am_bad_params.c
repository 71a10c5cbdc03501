/* Broken if this fails: a message with a wrong parameter is accepted, crashes, or is refused with
 * another status than the documented one or with a sentence that does not name the parameter; or
 * something of it fires or arrives.
 * ranks: 1 2
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

static uint64_t arrived;
static uint64_t word;
static unsigned char bytes[70000];

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
    word_add(&arrived, 1);
}

/* All three tiers say the same, and name the parameter. */
static void refused(int line, llcl_context_t *context, llcl_am_params_t am, llcl_status_t expected,
                    const char *name)
{
    int tier;
    for (tier = 0; tier < 3; tier++) {
        llcl_am_params_t given = am;
        struct tally tally = {0, 0, 0};
        llcl_status_t status;
        if (tier < 2 && given.on_complete.kind == LLCL_COMPLETE_NONE)
            given.on_complete = count_in(&tally);
        do {
            status = tier == 0   ? llcl_try_am_async(context, &given)
                     : tier == 1 ? llcl_am_async(context, &given)
                                 : llcl_am(context, &given);
        } while (status > 0);
        /* What needs the peer's word may also come with the completion. */
        if (status == LLCL_OK && tier < 2 && am.kind != LLCL_AM_MEDIUM) {
            AWAIT(&tally.fired, 1);
            status = (llcl_status_t)tally.last;
        } else {
            CHECK_EQUAL(tally.fired, 0);
            /* A blocking call may have learned it from the peer, who says less. */
            if (tier == 2 && am.kind != LLCL_AM_MEDIUM)
                name = "";
            CHECK(strncmp(llcl_last_error(), "llcl_am: ", 9) == 0 && strlen(llcl_last_error()) > 12);
            if (!strstr(llcl_last_error(), name))
                fprintf(stderr, "line %d: the sentence does not name %s\n", line, name);
            CHECK(strstr(llcl_last_error(), name) != NULL);
        }
        test_status(__FILE__, line, name, "the refusal", status, expected);
    }
}

#define REFUSED(am, expected, name) refused(__LINE__, context, (am), (expected), (name))
#define WITH(field, value, expected, name)    \
    do {                                      \
        llcl_am_params_t am_ = right;         \
        am_.field = (value);                  \
        REFUSED(am_, expected, name);         \
    } while (0)

static void medium(llcl_context_t *context, llcl_am_params_t right)
{
    uint32_t most = am_payload_to(context, llcl_size(context) - 1);
    static const uint32_t flags[] = {4, 8, 0x10000, 0x80000000u, UINT32_MAX, 7};
    size_t i;
    right.payload = bytes;
    right.payload_size = 8;
    WITH(peer, llcl_size(context), LLCL_ERR_INVALID, "peer");
    WITH(peer, UINT32_MAX, LLCL_ERR_INVALID, "peer");
    for (i = 0; i < sizeof flags / sizeof flags[0]; i++)
        WITH(flags, flags[i], LLCL_ERR_INVALID, "flags");
    WITH(id, LLCL_AM_IDS, LLCL_ERR_INVALID, "id");
    WITH(id, UINT32_MAX, LLCL_ERR_INVALID, "id");
    WITH(id, 65536 + 5, LLCL_ERR_INVALID, "id");
    WITH(kind, 3, LLCL_ERR_INVALID, "kind");
    WITH(kind, UINT32_MAX, LLCL_ERR_INVALID, "kind");
    WITH(header, NULL, LLCL_ERR_INVALID, "header");
    WITH(header_size, LLCL_AM_HEADER + 1, LLCL_ERR_RANGE, "header_size");
    WITH(header_size, SIZE_MAX, LLCL_ERR_RANGE, "header_size");
    WITH(payload, NULL, LLCL_ERR_INVALID, "payload");
    WITH(payload_size, most + 1, LLCL_ERR_RANGE, "payload_size");
    WITH(payload_size, SIZE_MAX, LLCL_ERR_RANGE, "payload_size");
    right.reply_capacity = 16; /* a capacity without a place */
    REFUSED(right, LLCL_ERR_INVALID, "reply");
}

static void in_regions(llcl_context_t *context, llcl_am_params_t right, struct shared *mine,
                       llcl_remote_t there)
{
    uint32_t kind;
    right.source = llcl_region_local(mine->region, 0);
    right.payload_size = 64;
    for (kind = LLCL_AM_LONG; kind <= LLCL_AM_BULK; kind++) {
        right.kind = kind;
        if (kind == LLCL_AM_LONG)
            right.destination = there;
        else
            memset(&right.destination, 0, sizeof right.destination);
        WITH(payload, bytes, LLCL_ERR_INVALID, "payload");
        /* Of a place the sentence names what is wrong with it. */
        WITH(source.offset, mine->size - 63, LLCL_ERR_RANGE, "offset");
        WITH(source.offset, UINT64_MAX, LLCL_ERR_RANGE, "offset");
        WITH(payload_size, mine->size + 1, LLCL_ERR_RANGE, "size");
        WITH(source.key, 0, LLCL_ERR_KEY, "key");
        WITH(source.key, right.source.key ^ 0x5555, LLCL_ERR_KEY, "key");
        if (kind == LLCL_AM_LONG) {
            WITH(destination.offset, 4096 - 63, LLCL_ERR_RANGE, "offset");
            WITH(destination.offset, UINT64_MAX - 3, LLCL_ERR_RANGE, "offset");
            WITH(destination.key, 0, LLCL_ERR_KEY, "key");
            WITH(destination.key, there.key ^ 0x5555, LLCL_ERR_KEY, "key");
        }
    }
}

static void completions(llcl_context_t *context, const llcl_am_params_t *right)
{
    llcl_completion_t wrong[6];
    unsigned i;
    for (i = 0; i < 6; i++)
        wrong[i] = llcl_no_completion();
    wrong[0].kind = 4;
    wrong[1].kind = UINT32_MAX;
    wrong[2] = llcl_callback(NULL, &word);
    wrong[3] = llcl_store_on(NULL);
    wrong[4] = llcl_add_on((uint64_t *)(void *)(bytes + 4));
    wrong[5] = llcl_store_on(&word);
    wrong[5].reserved = 1;
    for (i = 0; i < 6; i++) {
        llcl_am_params_t am = *right;
        am.on_complete = wrong[i];
        CHECK_STATUS(llcl_try_am_async(context, &am), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "on_complete") != NULL);
        CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_INVALID);
        am.on_complete = llcl_no_completion();
        am.on_local = wrong[i];
        CHECK_STATUS(llcl_try_am_async(context, &am), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "on_local") != NULL);
        CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_INVALID);
    }
}

/* The blocking tier takes no completion, not even a right one. */
static void blocking(llcl_context_t *context, const llcl_am_params_t *right)
{
    llcl_am_params_t am = *right;
    am.on_complete = llcl_add_on(&word);
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "completion") != NULL);
    am.on_complete = llcl_no_completion();
    am.on_local = llcl_add_on(&word);
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "completion") != NULL);
}

static void nulls_and_handlers(llcl_context_t *context, const llcl_am_params_t *right)
{
    llcl_stats_t stats;
    CHECK_STATUS(llcl_try_am_async(NULL, right), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_async(NULL, right), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am(NULL, right), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_try_am_async(context, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_async(context, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am(context, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_register(NULL, 0, handle, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_register(context, LLCL_AM_IDS, handle, NULL), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "id") && strstr(llcl_last_error(), "256"));
    CHECK_STATUS(llcl_am_register(context, UINT32_MAX, NULL, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_stats_get(NULL, &stats), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_stats_get(context, NULL), LLCL_ERR_INVALID);
    stats.struct_size = 0;
    CHECK_STATUS(llcl_stats_get(context, &stats), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "struct_size") != NULL);
    stats.struct_size = sizeof stats + 8;
    CHECK_STATUS(llcl_stats_get(context, &stats), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    uint64_t header = 1;
    struct shared target, mine;
    llcl_am_params_t right;
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    share(context, ALLOCATED, 4096, &target);
    am_register(context, 5, handle, NULL);
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_stats_t before = am_stats(context);
        region_make(context, ALLOCATED, 8192, &mine);
        right = am_to(peer, 5, &header, sizeof header);
        medium(context, right);
        in_regions(context, right, &mine, target.remote[peer]);
        completions(context, &right);
        blocking(context, &right);
        nulls_and_handlers(context, &right);
        CHECK_OK(llcl_flush_all(context));
        CHECK_EQUAL(am_stats(context).am_sent, before.am_sent);
        CHECK_EQUAL(word_get(&arrived), 0);
        CHECK_EQUAL(word_get(&word), 0);
        /* What is right still goes through. */
        CHECK_OK(llcl_am(context, &right));
        region_drop(&mine);
    }
    fence(context);
    /* Its one message came to rank 1, or to itself when it is alone. */
    CHECK_EQUAL(word_get(&arrived), test_in_threads() || llcl_rank(context) == 1 || llcl_size(context) == 1);
    share_end(context, &target);
}

TEST_MAIN(run)
