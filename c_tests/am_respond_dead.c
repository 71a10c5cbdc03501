/* Broken if this fails: responses that wait for slots of a rank when it dies stay in the library:
 * the rank that has sent them handles no further request, or its llcl_finalize waits for slots
 * that nobody frees.
 * kind: alone
 * modes: auto offload
 * timeout: 60
 */
#include "am.h"
#include "job.h"

enum { ASK, ANSWER, CHECK_UP };
enum { SLOTS = 16, MOST = 100000 };

/* Rank 1 handles nothing: its handlers run in polls only, and it never polls. */
static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
    config->am_handlers = atoi(getenv("LLCL_RANK")) == 1 ? LLCL_AM_HANDLERS_POLLED
                                                         : LLCL_AM_HANDLERS_SERIAL;
}

static void ask(llcl_am_t *message, void *data)
{
    llcl_am_params_t am = am_to(1, ANSWER, NULL, 0);
    CHECK_OK(llcl_am_respond(message, &am));
    word_add(data, 1);
}

static void answer(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

/* Sends requests until rank 0 has so many responses for this rank that it handles no more of them,
 * and dies. */
static void ask_and_die(llcl_context_t *context)
{
    llcl_am_params_t am = am_to(0, ASK, NULL, 0);
    int64_t since = now_ns();
    uint64_t posted = 0;
    while (now_ns() - since < (posted > 2 * SLOTS ? 300000000 : TEST_PATIENCE_NS)) {
        if (llcl_try_am_async(context, &am) == LLCL_OK) {
            since = now_ns();
            CHECK(posted++ < MOST);
        } else {
            usleep(100);
        }
    }
    CHECK(posted > 2 * SLOTS);
    _exit(0);
}

static void run(llcl_context_t *context)
{
    uint64_t *counts = am_new(3 * sizeof *counts);
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    am_register(context, ASK, ask, &counts[0]);
    am_register(context, ANSWER, answer, &counts[1]);
    am_register(context, CHECK_UP, answer, &counts[2]);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == 1)
        ask_and_die(context);
    while (llcl_peer_alive(context, 1) == LLCL_OK && now_ns() < end)
        usleep(100);
    CHECK_STATUS(llcl_peer_alive(context, 1), LLCL_ERR_PEER_DEAD);
    if (llcl_rank(context) == 2) {
        llcl_am_params_t am = am_to(0, CHECK_UP, NULL, 0);
        CHECK_OK(llcl_am_within(context, &am, TEST_PATIENCE_NS));
    } else {
        CHECK_OK(llcl_wait_word(context, &counts[2], 1, TEST_PATIENCE_NS));
    }
    end = now_ns();
    CHECK_OK(test_finalize(context));
    CHECK(now_ns() - end < TEST_PATIENCE_NS / 2);
    printf("rank %u has got on\n", (unsigned)test_rank);
}

/* The job fails in any case: a rank has ended without llcl_finalize. */
int main(int argc, char **argv)
{
    struct end end;
    (void)argc;
    if (getenv("LLCL_RANK"))
        return test_main(run, configure);
    end = job("--keep-going -n 3", argv[0], "", "");
    EXPECT(end, 1, "rank 0 has got on\n");
    EXPECT(end, 1, "rank 2 has got on\n");
    return 0;
}
