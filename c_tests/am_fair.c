/* Broken if this fails: in a 16-to-1 incast the slowest sender gets less than half of the mean
 * rate. Each sender counts its messages in 2 s. If more programs than cores run, the scheduler also
 * decides on the rates: if the counts do not suffice, the test adds up to seven more spells.
 * ranks: 17
 * modes: auto
 * policies: acquire limit distributed
 * timeout: 40
 */
#include "am.h"

#define SPELL_NS INT64_C(2000000000)
#define SPELLS 8
#define SENDERS 16

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static uint64_t send_for(llcl_context_t *context, int64_t span)
{
    int64_t end = now_ns() + span;
    uint64_t sent = 0;
    while (now_ns() < end) {
        llcl_am_params_t am = am_to(0, 0, &sent, sizeof sent);
        CHECK_OK(llcl_am_async(context, &am));
        sent++;
    }
    return sent;
}

/* Whether the slowest has half of the mean. */
static int judge(const uint64_t *all)
{
    uint64_t least = UINT64_MAX, most = 0, sum = 0;
    int i;
    for (i = 1; i <= SENDERS; i++) {
        sum += all[i];
        least = all[i] < least ? all[i] : least;
        most = all[i] > most ? all[i] : most;
        printf("%llu ", (unsigned long long)all[i]);
    }
    printf("\nslowest %llu, mean %llu, fastest %llu: slowest/mean %.2f\n", (unsigned long long)least,
           (unsigned long long)(sum / SENDERS), (unsigned long long)most,
           (double)least * SENDERS / (double)sum);
    return least * SENDERS * 2 >= sum;
}

static void run(llcl_context_t *context)
{
    uint64_t handled = 0, mine[2] = {0, 0}, all[SENDERS + 1][2], counts[SENDERS + 1], sum = 0;
    int i, spell;
    CHECK_EQUAL(llcl_size(context), SENDERS + 1);
    if (llcl_rank(context) == 0)
        am_register(context, 0, handle, &handled);
    fence(context);
    for (spell = 0; spell < SPELLS && !mine[1]; spell++) {
        if (llcl_rank(context) == 0)
            CHECK_STATUS(llcl_wait_word(context, &handled, UINT64_MAX, SPELL_NS), LLCL_ERR_TIMEOUT);
        else
            mine[0] += send_for(context, SPELL_NS);
        CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
        for (i = 0; i <= SENDERS; i++)
            counts[i] = all[i][0];
        if (llcl_rank(context) == 0)
            mine[1] = (uint64_t)judge(counts);
        /* Rank 0 tells whether that was enough. */
        CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
        mine[1] = all[0][1];
    }
    for (i = 1; i <= SENDERS; i++)
        sum += counts[i];
    if (llcl_rank(context) == 0) {
        AM_AWAIT(context, &handled, sum);
        CHECK_EQUAL(word_get(&handled), sum);
    }
    fence(context);
    CHECK_EQUAL(mine[1], 1);
}

TEST_MAIN(run)
