/* Broken if this fails: what the interface says of answers does not hold: a handler that returns
 * answers by 0 bytes; a second answer, one by the original of a retained message, or the release of
 * a message that is not retained is LLCL_ERR_STATE; too many bytes are LLCL_ERR_RANGE at the rank
 * that has no room for them, and none are copied; an answer without a waiting sender is dropped;
 * NULL is survived.
 * ranks: 1 2
 * threads: yes
 */
#include "am.h"

enum way {
    RETURN,      /* the handler just returns, after a release that is refused */
    TOO_LARGE,   /* more than the sender's place */
    TOO_MUCH,    /* more than am_medium: refused here, a smaller one is taken then */
    FROM_COPY,   /* retained: the right to answer has moved */
    RELEASE,     /* retained, then released without an answer */
    NO_BYTES,    /* NULL with a size is refused */
    NOBODY,      /* one-way */
    NOT_WANTED,  /* on_complete, but no place for bytes */
    WAYS
};

struct rank {
    uint64_t handled[WAYS];
    size_t medium;
    unsigned char *much;
};

static void from_copy(llcl_am_t *message)
{
    uint64_t seven = 7, eight = 8;
    llcl_am_t *copy = llcl_am_retain(message);
    CHECK(copy != NULL && copy != message);
    CHECK(llcl_am_retain(message) == NULL);
    CHECK_STATUS(llcl_am_reply(message, &seven, 8), LLCL_ERR_STATE);
    CHECK_EQUAL(am_wants_reply(copy), 1);
    CHECK_OK(llcl_am_reply(copy, &eight, 8));
    CHECK_STATUS(llcl_am_reply(copy, &seven, 8), LLCL_ERR_STATE);
    CHECK_OK(llcl_am_release(copy));
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint64_t way, eight = 8;
    memcpy(&way, am_header(message, NULL), sizeof way);
    CHECK_EQUAL(am_wants_reply(message), way != NOBODY);
    switch (way) {
    case RETURN:
        CHECK_STATUS(llcl_am_release(message), LLCL_ERR_STATE);
        CHECK(strstr(llcl_last_error(), "llcl_am_retain") != NULL);
        break;
    case TOO_LARGE: CHECK_OK(llcl_am_reply(message, rank->much, 11)); break;
    case TOO_MUCH:
        CHECK_STATUS(llcl_am_reply(message, rank->much, rank->medium + 1), LLCL_ERR_RANGE);
        CHECK(strlen(llcl_last_error()) > 3);
        CHECK_OK(llcl_am_reply(message, &eight, 8));
        break;
    case FROM_COPY: from_copy(message); break;
    case RELEASE: CHECK_OK(llcl_am_release(llcl_am_retain(message))); break;
    case NO_BYTES:
        CHECK_STATUS(llcl_am_reply(message, NULL, 8), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "data") != NULL);
        CHECK_OK(llcl_am_reply(message, NULL, 0));
        CHECK_STATUS(llcl_am_reply(message, &eight, 8), LLCL_ERR_STATE);
        break;
    case NOBODY: {
        llcl_am_t *copy = llcl_am_retain(message);
        CHECK(copy != NULL);
        CHECK(llcl_am_retain(message) == NULL);
        CHECK_EQUAL(am_wants_reply(copy), 0);
        CHECK_OK(llcl_am_reply(copy, &eight, 8));
        CHECK_OK(llcl_am_release(copy));
        break;
    }
    default: CHECK_OK(llcl_am_reply(message, &eight, 8)); break;
    }
    word_add(&rank->handled[way], 1);
}

static void nulls(void)
{
    size_t size = 99;
    llcl_am_view_t view;
    llcl_am_params_t am = am_to(0, 0, NULL, 0);
    CHECK_STATUS(llcl_am_view(NULL, &view), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_respond(NULL, &am), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_am_reply(NULL, &size, sizeof size), LLCL_ERR_INVALID);
    CHECK(llcl_am_retain(NULL) == NULL);
    CHECK_STATUS(llcl_am_release(NULL), LLCL_ERR_INVALID);
}

static llcl_status_t expected_status(uint64_t way)
{
    return way == TOO_LARGE ? LLCL_ERR_RANGE : LLCL_OK;
}

static void ask(llcl_context_t *context, uint32_t peer, uint64_t way, int blocking)
{
    unsigned char place[16];
    size_t size = 99, wanted = way == TOO_MUCH || way == FROM_COPY ? 8 : 0;
    struct tally tally = {0, 0, 0};
    llcl_am_params_t am = am_to(peer, 3, &way, sizeof way);
    memset(place, 0x77, sizeof place);
    if (way != NOT_WANTED && way != NOBODY) {
        am.reply = place;
        am.reply_capacity = 10;
        am.reply_size = &size;
    }
    if (blocking) {
        CHECK_STATUS(llcl_am(context, &am), expected_status(way));
        if (expected_status(way) != LLCL_OK)
            CHECK(strlen(llcl_last_error()) > 3);
    } else {
        am.on_complete = way == NOBODY ? llcl_no_completion() : count_in(&tally);
        POST(llcl_try_am_async(context, &am));
        if (way == NOBODY)
            return;
        AWAIT(&tally.fired, 1);
        CHECK_STATUS((llcl_status_t)tally.last, expected_status(way));
    }
    if (am.reply && expected_status(way) == LLCL_OK)
        CHECK_EQUAL(size, wanted);
    CHECK(bytes_are(place + wanted, sizeof place - wanted, 0x77));
    CHECK(wanted == 0 || (place[0] == 8 && bytes_are(place + 1, 7, 0)));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context), i;
    uint64_t way;
    rank->medium = am_limits(context).am_medium;
    rank->much = am_new(rank->medium + 1);
    am_register(context, 3, handle, rank);
    nulls();
    fence(context);
    for (i = 0; i < 20; i++) {
        for (way = 0; way < WAYS; way++) {
            ask(context, peer, way, 0);
            if (way != NOBODY)
                ask(context, peer, way, 1);
        }
    }
    /* A handler that has answered may go on for a while. */
    for (way = 0; way < WAYS; way++)
        AM_AWAIT(context, &rank->handled[way], way == NOBODY ? 20 : 40);
    fence(context);
    for (way = 0; way < WAYS; way++)
        CHECK_EQUAL(word_get(&rank->handled[way]), way == NOBODY ? 20 : 40);
}

TEST_MAIN(run)
