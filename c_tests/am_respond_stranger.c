/* Broken if this fails: a handler's response with more bytes than any rank takes is accepted,
 * because the rank that asked was not contacted before, and would be written behind its slot.
 * ranks: 2
 * threads: yes
 */
#include "am.h"

enum { ASK, ANSWER };
enum { LARGEST = 65536 };

static uint64_t answered;

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(0, ANSWER, NULL, 0);
    am.payload = data;
    am.payload_size = LARGEST + 1;
    CHECK_STATUS(llcl_am_respond(message, &am), LLCL_ERR_RANGE);
    CHECK(strstr(llcl_last_error(), "payload_size") != NULL);
    am.payload_size = LARGEST;
    CHECK_OK(llcl_am_respond(message, &am));
}

static void answer(llcl_am_t *message, void *data)
{
    size_t size;
    CHECK(am_payload(message, &size) != NULL);
    CHECK_EQUAL(size, LARGEST);
    word_add(data, 1);
}

static void run(llcl_context_t *context)
{
    am_register(context, ASK, ask, am_new(LARGEST + 1));
    am_register(context, ANSWER, answer, &answered);
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_am_params_t am = am_to(1, ASK, NULL, 0);
        CHECK_OK(llcl_am(context, &am));
        CHECK_EQUAL(word_get(&answered), 1);
    }
    fence(context);
}

TEST_MAIN(run)
