/* Broken if this fails: a message is lost, doubled or stalls when the counters of the message slots
 * wrap: every counter begins 1000 before 2^64, and so before 2^32 in its lower half, and each share
 * carries more than 3000 messages here. Slots down to 1, shares from 1 to 4, all policies; one at a
 * time and many at a time.
 * kind: alone
 * modes: auto
 * threads: yes
 * timeout: 60
 */
#include "am.h"

#define RANKS 4
#define PER_SHARE 3400u
#define FAST_PER_SHARE 1500u /* still past the edge */

static llcl_config_t wanted;
static uint32_t each, shares_made;
static struct ledger ledger;

static void configure(llcl_config_t *config)
{
    config->am_policy = wanted.am_policy;
    config->am_slots = wanted.am_slots;
    config->am_shares = wanted.am_shares;
    config->am_medium = 64;
    config->am_requests = 64;
}

static void handle(llcl_am_t *message, void *data)
{
    uint32_t number, answer;
    memcpy(&number, am_header(message, NULL), sizeof number);
    ledger_mark(data, am_source(message), number);
    answer = number + 1;
    if (number % 4 == 0)
        CHECK_OK(llcl_am_reply(message, &answer, sizeof answer));
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), i, answer = 0;
    llcl_stats_t stats;
    llcl_capabilities_t found = am_limits(context);
    CHECK_EQUAL(found.am_slots, wanted.am_slots);
    if (me == 0) {
        am_register(context, 3, handle, &ledger);
        __atomic_store_n(&shares_made, found.am_shares, __ATOMIC_RELEASE);
    }
    fence(context);
    /* Rank 0 sends to itself, too. */
    for (i = 0; i < each; i++) {
        llcl_am_params_t am = am_to(0, 3, &i, sizeof i);
        if (i % 4) {
            CHECK_OK(llcl_am_async(context, &am));
            continue;
        }
        am.reply = &answer;
        am.reply_capacity = sizeof answer;
        CHECK_OK(llcl_am(context, &am));
        CHECK_EQUAL(answer, i + 1);
    }
    if (me == 0)
        ledger_await(context, &ledger, AM_PATIENCE_NS);
    fence(context);
    stats = am_stats(context);
    CHECK_EQUAL(stats.am_sent, each);
    if (me == 0)
        CHECK_EQUAL(stats.am_handled, (uint64_t)RANKS * each);
}

static void one(uint32_t policy, uint32_t slots, uint32_t shares, uint32_t per_share)
{
    int64_t begin = now_ns();
    wanted.am_policy = policy;
    wanted.am_slots = slots;
    wanted.am_shares = shares;
    /* Each rank is nearest to one share, so that all are used alike by and large. */
    each = per_share * (policy == LLCL_AM_POLICY_DISTRIBUTED && slots > 2 ? shares : 1) / RANKS + 1;
    ledger_make(&ledger, RANKS, each);
    CHECK(test_threads(run, configure, RANKS) == 0);
    CHECK_EQUAL(ledger.total, (uint64_t)RANKS * each);
    if (policy == LLCL_AM_POLICY_DISTRIBUTED)
        CHECK_EQUAL(shares_made, slots == 1 ? 1 : shares < slots / 2 ? shares : slots / 2);
    printf("policy %u, %u slots, %u shares: 4 x %u messages in %lld ms\n", policy, slots, shares_made,
           each, (long long)(now_ns() - begin) / 1000000);
}

int main(void)
{
    static const uint32_t slots[] = {1, 2, 4, 16};
    uint32_t policy, i, shares, per_share = test_in_threads() ? FAST_PER_SHARE : PER_SHARE;
    for (i = 0; i < 4; i++)
        for (policy = LLCL_AM_POLICY_ACQUIRE; policy <= LLCL_AM_POLICY_DISTRIBUTED; policy++)
            for (shares = 1; shares <= 4; shares += 3)
                if (shares == 1 || policy == LLCL_AM_POLICY_DISTRIBUTED)
                    one(policy, slots[i], shares, per_share);
    return 0;
}
