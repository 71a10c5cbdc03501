/* Broken if this fails: llcl_wait_any does not return when one of its words has its value, whoever
 * brings it and however many there are, or names another one; does not hear of handlers; or accepts
 * what it must refuse.
 * ranks: 2
 * cma: on off
 * threads: 2
 */
#include "am.h"

#define WORDS 5u
#define ROUNDS 60u
#define CROWD 300u /* more than a rank has places for words that are slept on */

static void watch(llcl_awaited_t *words, uint64_t *first, uint32_t count)
{
    uint32_t i;
    for (i = 0; i < count; i++) {
        llcl_awaited_t it = LLCL_AWAITED_INIT;
        it.word = &first[i];
        it.at_least = 1;
        words[i] = it;
    }
}

static void set(llcl_context_t *context, llcl_remote_t word, uint64_t value)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    write.peer = 1 - llcl_rank(context);
    write.destination = word;
    write.value = value;
    write.size = 8;
    CHECK_OK(llcl_write_value(context, &write));
}

/* Each round the other rank changes one word, in turn; its number is answered in words[count]. */
static void in_turn(llcl_context_t *context, int kind, uint32_t count, uint32_t rounds)
{
    struct shared target;
    llcl_awaited_t *words = calloc(count, sizeof *words);
    uint32_t round, which;
    CHECK(words != NULL);
    share(context, kind, (count + 1) * 8, &target);
    watch(words, target.words, count);
    for (round = 0; round < rounds; round++) {
        uint32_t at = (round * 7 + count / 2) % count;
        if ((round + llcl_rank(context)) % 2 == 0) {
            set(context, remote_at(&target, 1 - llcl_rank(context), at * 8), 1);
            CHECK_OK(llcl_wait_word(context, &target.words[count], round + 1, TEST_PATIENCE_NS));
        } else {
            which = UINT32_MAX;
            words[at].flags = LLCL_WAIT_FROM_PEER;
            words[at].peer = 1 - llcl_rank(context);
            CHECK_OK(llcl_wait_any(context, words, count, round % 3 ? 0 : LLCL_WAIT_MESSAGES,
                                   round % 2 ? -1 : TEST_PATIENCE_NS, &which));
            CHECK_EQUAL(which, at);
            CHECK_OK(llcl_wait_any(context, words, count, 0, 0, NULL));
            word_set(&target.words[at], 0);
            set(context, remote_at(&target, 1 - llcl_rank(context), count * 8), round + 1);
        }
    }
    free(words);
    share_end(context, &target);
}

/* A word of the stack that an operation's own completion sets. */
static void own_completion(llcl_context_t *context)
{
    uint64_t ends[WORDS] = {0};
    llcl_awaited_t words[WORDS];
    struct shared target;
    uint32_t i, which = UINT32_MAX;
    share(context, REGISTERED, 64, &target);
    watch(words, ends, WORDS);
    for (i = 0; i < WORDS; i++) {
        llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
        add.peer = 1 - llcl_rank(context);
        add.target = remote_at(&target, add.peer, 0);
        add.on_complete = llcl_store_on(&ends[WORDS - 1 - i]);
        POST(llcl_try_fetch_add_async(context, &add));
        CHECK_OK(llcl_wait_any(context, words, WORDS, 0, TEST_PATIENCE_NS, &which));
        CHECK_EQUAL(which, WORDS - 1 - i);
        word_set(&ends[which], 0);
    }
    share_end(context, &target);
}

static void count_up(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static void messages(llcl_context_t *context)
{
    uint64_t *handled = am_new(2 * sizeof *handled);
    llcl_am_params_t am = am_to(1 - llcl_rank(context), 3, NULL, 0);
    llcl_awaited_t words[WORDS];
    uint64_t never[WORDS] = {0};
    uint32_t i, count, which;
    am_register(context, 3, count_up, handled);
    watch(words, never, WORDS);
    fence(context);
    for (i = 0; i < 20; i++) {
        count = i % 2 ? WORDS : 0;
        CHECK_OK(llcl_am(context, &am));
        do {
            which = UINT32_MAX;
            CHECK_OK(llcl_wait_any(context, count ? words : NULL, count, LLCL_WAIT_MESSAGES, -1, &which));
            CHECK_EQUAL(which, count);
        } while (word_get(handled) < i + 1);
        fence(context);
    }
    POST(llcl_am_register(context, 3, NULL, NULL));
}

static void in_callback(void *data, llcl_status_t status)
{
    uint64_t never = 0;
    llcl_awaited_t word = LLCL_AWAITED_INIT;
    CHECK_OK(status);
    word.word = &never;
    word.at_least = 1;
    CHECK_STATUS(llcl_wait_any(data, &word, 1, 0, 0, NULL), LLCL_ERR_STATE);
}

static void refused(llcl_context_t *context)
{
    uint64_t word = 5;
    llcl_awaited_t it = LLCL_AWAITED_INIT, both[2];
    uint32_t which = 77;
    it.word = &word;
    it.at_least = 6;
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 0, &which), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 1000, &which), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_any(context, &it, 1, LLCL_WAIT_MESSAGES, 3000000, &which), LLCL_ERR_TIMEOUT);
    CHECK_STATUS(llcl_wait_any(NULL, &it, 1, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_any(context, NULL, 1, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_any(context, &it, 0, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 2, 0, &which), LLCL_ERR_INVALID);
    it.flags = 2;
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 0, &which), LLCL_ERR_INVALID);
    it.flags = LLCL_WAIT_FROM_PEER;
    it.peer = llcl_size(context);
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "peer is 2") != NULL);
    both[0] = both[1] = it;
    both[0].flags = 0;
    CHECK_STATUS(llcl_wait_any(context, both, 2, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "words[1].peer is 2") != NULL);
    it.flags = 0;
    it.word = (uint64_t *)(void *)((char *)&word + 4);
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "words[0].word") != NULL);
    both[0] = both[1] = it;
    both[0].word = &word;
    CHECK_STATUS(llcl_wait_any(context, both, 2, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "words[1].word") != NULL);
    it.word = NULL;
    CHECK_STATUS(llcl_wait_any(context, &it, 1, 0, 0, &which), LLCL_ERR_INVALID);
    CHECK_EQUAL(which, 77);
    in_callback_of(context, in_callback);
}

static void run(llcl_context_t *context)
{
    refused(context);
    in_turn(context, ALLOCATED, WORDS, ROUNDS);
    in_turn(context, REGISTERED, WORDS, ROUNDS);
    in_turn(context, ALLOCATED, CROWD, 8);
    own_completion(context);
    messages(context);
}

TEST_MAIN(run)
