/* Broken if this fails: of many threads that sleep on different words, or on one, some is not woken
 * by its own word, or returns before it.
 * ranks: 2
 * cma: on off
 * threads: 2
 */
#include "shared.h"

#define SLEEPERS 12
#define ROUNDS 20

struct sleeper {
    llcl_context_t *context;
    uint64_t *word;
    struct shared *target;
};

/* Round r: until my word has reached r. The last three share one word. */
static void *sleep_rounds(void *data)
{
    struct sleeper *sleeper = data;
    uint64_t round;
    for (round = 1; round <= ROUNDS; round++) {
        llcl_fetch_add_params_t add = {0};
        CHECK_OK(llcl_wait_word(sleeper->context, sleeper->word, round, TEST_PATIENCE_NS));
        CHECK(word_get(sleeper->word) >= round);
        add.peer = 0;
        add.target = remote_at(sleeper->target, 0, 8 * (size_t)(sleeper->word - sleeper->target->words));
        add.operand = 1;
        CHECK_OK(llcl_fetch_add(sleeper->context, &add));
    }
    return NULL;
}

static uint32_t word_of(uint32_t sleeper)
{
    return sleeper < SLEEPERS - 3 ? sleeper : SLEEPERS - 3;
}

static void sleepers(llcl_context_t *context, struct shared *target)
{
    struct sleeper all[SLEEPERS];
    pthread_t threads[SLEEPERS];
    uint32_t i;
    for (i = 0; i < SLEEPERS; i++) {
        all[i].context = context;
        all[i].target = target;
        all[i].word = &target->words[word_of(i)];
        CHECK(pthread_create(&threads[i], NULL, sleep_rounds, &all[i]) == 0);
    }
    for (i = 0; i < SLEEPERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Wakes one word at a time, in a shuffled order, and expects its sleepers' answers and no
 * other's. */
static void waker(llcl_context_t *context, struct shared *target)
{
    uint64_t state = 4711, round;
    uint32_t order[SLEEPERS - 2], i;
    for (i = 0; i < SLEEPERS - 2; i++)
        order[i] = i;
    for (round = 1; round <= ROUNDS; round++) {
        for (i = SLEEPERS - 3; i > 0; i--) {
            uint32_t j = (uint32_t)(random_next(&state) % (i + 1)), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        if (round % 5 == 0)
            sleep_ms(5);
        for (i = 0; i < SLEEPERS - 2; i++) {
            uint32_t word = order[i];
            uint64_t per = word == SLEEPERS - 3 ? 3 : 1;
            llcl_write_value_params_t value = {0};
            value.peer = 1;
            value.destination = remote_at(target, 1, 8 * word);
            value.value = round;
            value.size = 8;
            CHECK(word_get(&target->words[word]) == (round - 1) * per);
            CHECK_OK(llcl_write_value(context, &value));
            CHECK_OK(llcl_wait_word(context, &target->words[word], round * per, TEST_PATIENCE_NS));
        }
    }
}

static void run(llcl_context_t *context)
{
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target;
        share(context, kind, 4096, &target);
        if (llcl_rank(context) == 0)
            waker(context, &target);
        else
            sleepers(context, &target);
        share_end(context, &target);
    }
}

TEST_MAIN(run)
