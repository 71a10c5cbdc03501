/* Broken if this fails: a request with NULL, unknown flags, an unknown kind of completion, a
 * misaligned or missing word, or a completion in the blocking tier is accepted or crashes, and
 * something fires.
 * ranks: 1 2
 * modes: auto offload direct
 * threads: yes
 */
#include "wild.h"

static struct shared target, mine;

/* One wrong thing per call: the operations' parameters are otherwise right. */
#define EACH_TIER(name, params, expected)                                           \
    do {                                                                            \
        CHECK_STATUS(llcl_try_##name##_async(context, &(params)), expected);        \
        CHECK_STATUS(llcl_##name##_async(context, &(params)), expected);            \
    } while (0)
#define WITH_NULLS(name, type)                                                      \
    do {                                                                            \
        type zero_ = {0};                                                           \
        CHECK_STATUS(llcl_try_##name##_async(context, NULL), LLCL_ERR_INVALID);     \
        CHECK_STATUS(llcl_##name##_async(context, NULL), LLCL_ERR_INVALID);         \
        CHECK_STATUS(llcl_##name(context, NULL), LLCL_ERR_INVALID);                 \
        CHECK_STATUS(llcl_try_##name##_async(NULL, &zero_), LLCL_ERR_INVALID);      \
        CHECK_STATUS(llcl_##name##_async(NULL, &zero_), LLCL_ERR_INVALID);          \
        CHECK_STATUS(llcl_##name(NULL, &zero_), LLCL_ERR_INVALID);                  \
    } while (0)

static void nulls(llcl_context_t *context)
{
    WITH_NULLS(read, llcl_read_params_t);
    WITH_NULLS(write, llcl_write_params_t);
    WITH_NULLS(write_value, llcl_write_value_params_t);
    WITH_NULLS(write_small, llcl_write_small_params_t);
    WITH_NULLS(write_signal, llcl_write_signal_params_t);
    WITH_NULLS(atomic, llcl_atomic_params_t);
    WITH_NULLS(fetch_add, llcl_fetch_add_params_t);
    WITH_NULLS(compare_swap, llcl_compare_swap_params_t);
    CHECK_STATUS(llcl_flush(NULL, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_flush_all(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_progress(NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_peer_alive(NULL, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_word(NULL, mine.words, 0, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_word(context, NULL, 0, 0), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_word(context, (uint64_t *)(void *)(mine.bytes + 4), 0, 0),
                 LLCL_ERR_INVALID);
}

static void completions(llcl_context_t *context, struct wild *wild)
{
    static uint64_t words[2];
    llcl_completion_t wrong[6];
    unsigned i;
    for (i = 0; i < 6; i++)
        wrong[i] = llcl_no_completion();
    wrong[0].kind = 4;
    wrong[1].kind = UINT32_MAX;
    wrong[2] = llcl_callback(NULL, words);
    wrong[3] = llcl_store_on(NULL);
    wrong[4] = llcl_add_on((uint64_t *)(void *)((unsigned char *)words + 4));
    wrong[5] = llcl_store_on(words);
    wrong[5].reserved = 1;
    for (wild->operation = 0; wild->operation < WILD_OPERATIONS; wild->operation++) {
        for (i = 0; i < 6; i++) {
            wild->on_complete = wrong[i];
            wild->tier = TIER_TRY;
            CHECK_STATUS(wild_post(context, wild), LLCL_ERR_INVALID);
            wild->tier = TIER_ASYNC;
            CHECK_STATUS(wild_post(context, wild), LLCL_ERR_INVALID);
        }
    }
    CHECK(words[0] == 0 && words[1] == 0);
}

static void on_local_too(llcl_context_t *context, const struct wild *wild)
{
    static uint64_t word;
    llcl_write_params_t write = {0};
    llcl_write_signal_params_t signal = {0};
    llcl_read_params_t read = {0};
    write.peer = signal.peer = read.peer = wild->peer;
    write.source = signal.source = read.destination = wild->local;
    write.destination = signal.destination = read.source = wild->remote;
    write.size = signal.size = read.size = 8;
    signal.signal = wild->signal;
    signal.signal_op = LLCL_SIGNAL_SET;
    write.on_local.kind = signal.on_local.kind = 9;
    EACH_TIER(write, write, LLCL_ERR_INVALID);
    EACH_TIER(write_signal, signal, LLCL_ERR_INVALID);
    /* The blocking tier takes no completion. */
    write.on_local = llcl_add_on(&word);
    CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_INVALID);
    write.on_local = llcl_no_completion();
    write.on_complete = read.on_complete = llcl_add_on(&word);
    CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_INVALID);
    /* The signal word and its operation. */
    signal.on_local = llcl_no_completion();
    signal.signal_op = 0;
    EACH_TIER(write_signal, signal, LLCL_ERR_INVALID);
    signal.signal_op = 3;
    EACH_TIER(write_signal, signal, LLCL_ERR_INVALID);
    signal.signal_op = LLCL_SIGNAL_ADD;
    signal.signal.offset += 4;
    EACH_TIER(write_signal, signal, LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "signal: offset is ") != NULL);
    signal.signal.offset -= 4;
    signal.reserved = 1;
    EACH_TIER(write_signal, signal, LLCL_ERR_INVALID);
    CHECK_EQUAL(word_get(&word), 0);
    /* Of several addresses the sentence names the wrong one, and it has the caller's flags. */
    signal.reserved = 0;
    signal.signal.key = 0;
    EACH_TIER(write_signal, signal, LLCL_ERR_KEY);
    CHECK(strstr(llcl_last_error(), "signal: key 0x0 ") != NULL);
    write.on_complete = llcl_no_completion();
    write.source.offset = 5000;
    CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_RANGE);
    CHECK(strstr(llcl_last_error(), "local offset 5000 ") != NULL);
    write.flags = 8;
    CHECK_STATUS(llcl_write(context, &write), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "flags has 0x8,") != NULL);
    /* Nor one that does nothing but is malformed. */
    read.on_complete.reserved = 1;
    CHECK_STATUS(llcl_read(context, &read), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    static const uint32_t unknown[] = {8, 16, 0x10000, 0x80000000u, UINT32_MAX, 15};
    struct wild wild = {0};
    unsigned i;
    if (test_in_threads() && llcl_rank(context) != 0) {
        fence(context);
        return;
    }
    /* Each rank is its own peer: what is wrong is wrong before any peer is asked. */
    region_make(context, ALLOCATED, 4096, &target);
    region_make(context, ALLOCATED, 4096, &mine);
    wild.peer = llcl_rank(context);
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = mine.words;
    wild.remote = llcl_region_remote(target.region, 0);
    wild.signal = llcl_region_remote(target.region, 64);
    nulls(context);
    for (i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        wild.flags = unknown[i];
        WILD_REFUSED(context, &wild, LLCL_ERR_INVALID);
    }
    wild.flags = 0;
    completions(context, &wild);
    on_local_too(context, &wild);
    CHECK_OK(llcl_flush_all(context));
    CHECK(bytes_are(target.bytes, 4096, 0));
    region_drop(&target);
    region_drop(&mine);
    fence(context);
}

TEST_MAIN(run)
