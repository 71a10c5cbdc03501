/* Broken if this fails: llcl_finalize waits for ever for a message that is never answered, instead
 * of ending it after LLCL_FINALIZE_MS with LLCL_ERR_CANCELED, once; an answer that comes later
 * touches memory that is the caller's own again; or a message that can still be handled is
 * cancelled.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

#define KEPT 40u
#define ONE_WAY 2000u

enum { KEEP, COUNT, ANSWER };

struct rank {
    llcl_am_t *kept[4 * KEPT];
    uint64_t count, kept_count;
    struct tally tally, answered;
    unsigned char place[KEPT][16];
};

static void keep(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    rank->kept[rank->kept_count] = llcl_am_retain(message);
    CHECK(rank->kept[rank->kept_count] != NULL);
    word_add(&rank->kept_count, 1);
}

static void count(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(&((struct rank *)data)->count, 1);
}

static void answer(llcl_am_t *message, void *data)
{
    (void)data;
    sleep_ms(1);
    CHECK_OK(llcl_am_reply(message, "answer", 6));
}

static void send_all(llcl_context_t *context, struct rank *rank)
{
    uint32_t i;
    for (i = 0; i < KEPT; i++) {
        llcl_am_params_t am = am_to(0, KEEP, NULL, 0);
        am.reply = rank->place[i];
        am.reply_capacity = sizeof rank->place[i];
        am.on_complete = count_in(&rank->tally);
        CHECK_OK(llcl_am_async(context, &am));
        am.id = ANSWER;
        am.reply = NULL;
        am.reply_capacity = 0;
        am.on_complete = count_in(&rank->answered);
        CHECK_OK(llcl_am_async(context, &am));
    }
    for (i = 0; i < ONE_WAY; i++) {
        llcl_am_params_t am = am_to(0, COUNT, NULL, 0);
        CHECK_OK(llcl_am_async(context, &am));
    }
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t senders = llcl_size(context) - 1, me = llcl_rank(context), i;
    int64_t begin;
    if (me == 0) {
        am_register(context, KEEP, keep, rank);
        am_register(context, COUNT, count, rank);
        am_register(context, ANSWER, answer, rank);
    }
    fence(context);
    if (me == 0) {
        AM_AWAIT(context, &rank->kept_count, senders * KEPT);
        fence(context);
        AM_AWAIT(context, &rank->count, senders * ONE_WAY);
        CHECK_EQUAL(word_get(&rank->count), senders * ONE_WAY);
        /* The senders' patience ends meanwhile: 1 s. */
        sleep_ms(2500);
        for (i = 0; i < senders * KEPT; i++) {
            CHECK_OK(llcl_am_reply(rank->kept[i], "too late", 8));
            CHECK_OK(llcl_am_release(rank->kept[i]));
        }
        CHECK_OK(test_finalize(context));
        return;
    }
    memset(rank->place, 0x33, sizeof rank->place);
    send_all(context, rank);
    fence(context);
    begin = now_ns();
    CHECK_OK(test_finalize(context));
    printf("llcl_finalize took %lld ms\n", (long long)(now_ns() - begin) / 1000000);
    CHECK_EQUAL(rank->tally.fired, KEPT);
    CHECK_EQUAL(rank->tally.failed, KEPT);
    CHECK_STATUS((llcl_status_t)rank->tally.last, LLCL_ERR_CANCELED);
    CHECK_EQUAL(rank->answered.fired, KEPT);
    CHECK_EQUAL(rank->answered.failed, 0);
    sleep_ms(20);
    CHECK(bytes_are(&rank->place[0][0], sizeof rank->place, 0x33));
    CHECK_EQUAL(rank->tally.fired, KEPT);
}

TEST_MAIN(run)
