/* Broken if this fails: under 64-to-1 incast between ranks that are threads of one process a
 * message is lost or doubled; with few slots, in all policies, with handlers one at a time and in
 * parallel.
 * kind: alone
 * modes: auto
 * threads: yes
 * timeout: 60
 */
#include "am.h"

#define MESSAGES 16000u /* of all senders together */
#define FAST_MESSAGES 3200u

static uint32_t policy, handlers, senders, each;
static struct ledger ledger;

static void configure(llcl_config_t *config)
{
    config->am_slots = 8;
    config->am_medium = 64;
    config->am_policy = policy;
    config->am_handlers = handlers;
}

static void handle(llcl_am_t *message, void *data)
{
    uint32_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    ledger_mark(data, am_source(message) - 1, number);
}

static void run(llcl_context_t *context)
{
    llcl_capabilities_t found = am_limits(context);
    CHECK(found.am_policy == policy && found.am_handlers == handlers && found.am_slots == 8);
    if (llcl_rank(context) == 0) {
        am_register(context, 3, handle, &ledger);
        fence(context);
        ledger_await(context, &ledger, AM_PATIENCE_NS);
    } else {
        uint32_t i;
        fence(context);
        for (i = 0; i < each; i++) {
            llcl_am_params_t am = am_to(0, 3, &i, sizeof i);
            CHECK_OK(llcl_am_async(context, &am));
        }
    }
    fence(context);
}

int main(void)
{
    int in_checker = test_in_threads();
    senders = in_checker ? 16 : 64;
    each = (in_checker ? FAST_MESSAGES : MESSAGES) / senders;
    for (policy = LLCL_AM_POLICY_ACQUIRE; policy <= LLCL_AM_POLICY_DISTRIBUTED; policy++) {
        for (handlers = LLCL_AM_HANDLERS_SERIAL; handlers <= LLCL_AM_HANDLERS_PARALLEL; handlers++) {
            int64_t begin = now_ns();
            ledger_make(&ledger, senders, each);
            CHECK(test_threads(run, configure, senders + 1) == 0);
            CHECK_EQUAL(ledger.total, (uint64_t)senders * each);
            printf("policy %u, handlers %u: %u to 1 in %lld ms\n", policy, handlers, senders,
                   (long long)(now_ns() - begin) / 1000000);
        }
    }
    return 0;
}
