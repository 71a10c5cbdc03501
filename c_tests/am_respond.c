/* Broken if this fails: a response loses or changes something of what it brings, runs its handler
 * more than once or not at all, or after the end of the request that somebody waits for; or a
 * second answer, an answer to a response, or a message from a response's handler is accepted.
 * ranks: 1 2
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

enum { ASK, ANSWER, NONE };
enum { ROUNDS = 400, LARGEST = 65536 };

struct rank {
    llcl_context_t *context;
    uint64_t asked, answered, ended;
    uint32_t peer;
    unsigned char *bytes, *expected;
};

static void configure(llcl_config_t *config)
{
    config->am_medium = 256;
    config->am_slots = 16;
    config->am_handlers = am_handlers_by_mode();
}

static size_t size_of(uint64_t number)
{
    static const size_t sizes[] = {0, 1, 8, 60, 88, 255, 256, 257, 4096, LARGEST};
    return sizes[number % (sizeof sizes / sizeof sizes[0])];
}

static void refused(llcl_am_t *message, llcl_am_params_t am, llcl_status_t expected)
{
    CHECK_STATUS(llcl_am_respond(message, &am), expected);
    CHECK(strlen(llcl_last_error()) > 3);
}

static void refuse_what_is_wrong(llcl_am_t *message, llcl_am_params_t right)
{
    llcl_am_params_t am = right;
    static uint64_t word;
    /* Behind a network the request's end tells: am_no_handler. */
    if (!getenv("LLCL_TRANSPORT")) {
        am.id = NONE;
        refused(message, am, LLCL_ERR_NO_HANDLER);
    }
    am = right;
    am.kind = LLCL_AM_BULK;
    am.payload = NULL;
    refused(message, am, LLCL_ERR_INVALID);
    am = right;
    am.on_complete = llcl_store_on(&word);
    refused(message, am, LLCL_ERR_INVALID);
    am = right;
    am.source.key = 1;
    refused(message, am, LLCL_ERR_INVALID);
    am = right;
    am.source = llcl_local_address(&word);
    refused(message, am, LLCL_ERR_INVALID);
    am = right;
    am.destination.offset = 8;
    refused(message, am, LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "destination") != NULL);
    am = right;
    am.reply_capacity = 8;
    refused(message, am, LLCL_ERR_INVALID);
    am = right;
    am.payload = &word;
    am.payload_size = LARGEST + 1;
    refused(message, am, LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_am_respond(message, NULL), LLCL_ERR_INVALID);
}

static void ask(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    llcl_am_params_t am;
    uint64_t number;
    CHECK_EQUAL(view.header_size, sizeof number);
    CHECK_EQUAL(view.flags & LLCL_AM_RESPONSE, 0);
    memcpy(&number, view.header, sizeof number);
    am = am_to(77, ANSWER, &number, sizeof number);
    am.tag = (uint16_t)(number + 1);
    am.payload_size = size_of(number);
    am.payload = am.payload_size || number % 20 ? rank->bytes : NULL;
    /* One with a payload, too: it takes another path. */
    if (number <= 1)
        refuse_what_is_wrong(message, am);
    CHECK_OK(llcl_am_respond(message, &am));
    refused(message, am, LLCL_ERR_STATE);
    CHECK(llcl_am_retain(message) == NULL);
    if (view.flags & LLCL_AM_WANTS_REPLY)
        CHECK_STATUS(llcl_am_reply(message, NULL, 0), LLCL_ERR_STATE);
    word_add(&rank->asked, 1);
}

static void answer(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    llcl_am_view_t view = am_view(message);
    llcl_am_params_t am = am_to(rank->peer, ASK, NULL, 0);
    uint64_t number;
    CHECK_EQUAL(view.header_size, sizeof number);
    memcpy(&number, view.header, sizeof number);
    CHECK_EQUAL(view.source, rank->peer);
    CHECK_EQUAL(view.id, ANSWER);
    CHECK_EQUAL(view.flags, LLCL_AM_RESPONSE);
    CHECK_EQUAL(view.tag, (uint16_t)(number + 1));
    CHECK_EQUAL(view.payload_size, size_of(number));
    CHECK_EQUAL(view.payload == NULL, number % 20 == 0);
    CHECK(view.payload_size == 0 || memcmp(view.payload, rank->expected, view.payload_size) == 0);
    refused(message, am, LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_reply(message, NULL, 0), LLCL_ERR_STATE);
    CHECK(strstr(llcl_last_error(), "response") != NULL);
    CHECK_STATUS(llcl_try_am_async(rank->context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_async(rank->context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am(rank->context, &am), LLCL_ERR_STATE);
    /* The short path of a message: a word as header, and nothing else. */
    am.header = &number;
    am.header_size = sizeof number;
    CHECK_STATUS(llcl_try_am_async(rank->context, &am), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_am_async(rank->context, &am), LLCL_ERR_STATE);
    am.flags = LLCL_FLAG_DEFER;
    CHECK_STATUS(llcl_try_am_async(rank->context, &am), LLCL_ERR_STATE);
    word_add(&rank->answered, 1);
}

static void end(void *data, llcl_status_t status)
{
    struct rank *rank = data;
    CHECK_OK(status);
    word_add(&rank->ended, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint64_t number, waited = 0, here;
    rank->context = context;
    rank->peer = llcl_size(context) - 1 - llcl_rank(context);
    rank->bytes = am_new(LARGEST);
    rank->expected = am_new(LARGEST);
    pattern_fill(rank->bytes, LARGEST, llcl_rank(context));
    pattern_fill(rank->expected, LARGEST, rank->peer);
    am_register(context, ASK, ask, rank);
    am_register(context, ANSWER, answer, rank);
    /* Contacts the peer: a response to a rank that was not contacted cannot be checked against its
     * handlers. */
    CHECK_EQUAL(am_payload_to(context, rank->peer), LARGEST);
    fence(context);
    for (number = 0; number < ROUNDS; number++) {
        llcl_am_params_t am = am_to(rank->peer, ASK, &number, sizeof number);
        switch (number / 10 % 3) {
        case 0: /* nobody waits */
            CHECK_OK(llcl_am_async(context, &am));
            break;
        case 1:
            am.on_complete = llcl_callback(end, rank);
            waited++;
            CHECK_OK(llcl_am_async(context, &am));
            break;
        default: /* the response's handler has run when the call returns */
            AM_AWAIT(context, &rank->answered, number);
            CHECK_OK(llcl_am(context, &am));
            here = word_get(&rank->answered);
            CHECK_EQUAL(here, number + 1);
            break;
        }
    }
    AM_AWAIT(context, &rank->answered, ROUNDS);
    AM_AWAIT(context, &rank->ended, waited);
    fence(context);
    CHECK_EQUAL(word_get(&rank->asked), ROUNDS);
    CHECK_EQUAL(word_get(&rank->answered), ROUNDS);
    CHECK_EQUAL(word_get(&rank->ended), waited);
}

TEST_MAIN_CONFIG(run, configure)
