/* Broken if this fails: of more than 64 ranks two that differ by 64 wait in the lane for a slot of
 * a receiver, which has slots again, has never contacted them, and lets them sleep on for a second.
 * A busy machine may delay some of the rounds.
 * ranks: 70
 * modes: auto
 * timeout: 60
 */
#include "am.h"

#define ROUNDS 5u
#define SOON_NS INT64_C(500000000)

/* FILLER leaves no slot for the two others. */
enum { FILLER = 1, FIRST = 3, SECOND = FIRST + 64 };

/* At rank 0. A rank that has sent its messages adds to READY. DONE counts the rounds; the others
 * read it, because rank 0 must not contact them. */
enum { READY, DONE, WORDS };

static void configure(llcl_config_t *config)
{
    config->am_slots = 4;
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

static void take(llcl_am_t *message, void *data)
{
    (void)message;
    ++*(uint64_t *)data;
}

/* Tells rank 0 how many messages this rank has sent in this round. */
static void tell(llcl_context_t *context, const struct shared *words, uint64_t sent)
{
    llcl_atomic_params_t add = LLCL_ATOMIC_PARAMS_INIT;
    add.target = remote_at(words, 0, 8 * READY);
    add.op = LLCL_OP_ADD;
    add.type = LLCL_TYPE_U64;
    /* The number of ranks that have told, and above it that of messages. */
    add.operand = sent << 32 | 1;
    CHECK_OK(llcl_atomic(context, &add));
}

static void send(llcl_context_t *context, const struct shared *words, uint32_t me)
{
    const volatile uint64_t *at_rank_0;
    uint64_t round, header = me;
    llcl_am_params_t am = am_to(0, 0, &header, sizeof header);
    CHECK_OK(llcl_connect(context, (uint32_t[]){0}, 1));
    at_rank_0 = llcl_remote_pointer(context, 0, words->remote[0], 8 * WORDS);
    CHECK(at_rank_0 != NULL);
    for (round = 0; round < ROUNDS; round++) {
        int64_t give_up = now_ns() + TEST_PATIENCE_NS;
        uint64_t sent = 0;
        llcl_status_t status;
        if (me == FILLER) {
            while ((status = llcl_try_am_async(context, &am)) != LLCL_RETRY_NO_CREDIT) {
                CHECK(status == LLCL_OK || status == LLCL_RETRY_BUSY);
                sent += status == LLCL_OK;
            }
        } else {
            while ((at_rank_0[READY] & UINT32_MAX) < 3 * round + 1) {
                CHECK(now_ns() < give_up);
                usleep(1000);
            }
            am.flags = LLCL_FLAG_DEFER;
            CHECK_OK(llcl_try_am_async(context, &am));
            sent = 1;
        }
        tell(context, words, sent);
        while (at_rank_0[DONE] <= round) {
            CHECK(now_ns() < give_up);
            usleep(1000);
        }
    }
}

static void receive(llcl_context_t *context, const struct shared *words, const uint64_t *taken)
{
    uint32_t round, soon = 0;
    for (round = 0; round < ROUNDS; round++) {
        int64_t began, give_up = now_ns() + TEST_PATIENCE_NS;
        while ((word_get(&words->words[READY]) & UINT32_MAX) < 3 * (round + 1)) {
            CHECK(now_ns() < give_up);
            usleep(1000);
        }
        /* Until the threads that send for the two ranks sleep. */
        sleep_ms(50);
        began = now_ns();
        while (*taken < word_get(&words->words[READY]) >> 32) {
            CHECK(now_ns() < give_up);
            CHECK_OK(llcl_am_poll(context, 64, NULL));
            usleep(20);
        }
        printf("round %u took %lld us\n", round, (long long)(now_ns() - began) / 1000);
        soon += now_ns() - began < SOON_NS;
        word_add(&words->words[DONE], 1);
    }
    CHECK(soon > ROUNDS / 2);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context);
    uint64_t *taken = am_new(sizeof *taken);
    struct shared words;
    share(context, ALLOCATED, 8 * WORDS, &words);
    if (me == 0)
        am_register(context, 0, take, taken);
    fence(context);
    if (me == 0)
        receive(context, &words, taken);
    else if (me == FILLER || me == FIRST || me == SECOND)
        send(context, &words, me);
    share_end(context, &words);
}

TEST_MAIN_CONFIG(run, configure)
