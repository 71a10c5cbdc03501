/* Broken if this fails: in a 16-to-1 incast the slowest sender gets less than half of the mean rate.
 * Each sender counts what it has sent in 2 s.
 * ranks: 17
 * modes: auto
 * policies: acquire limit distributed
 * timeout: 40
 */
#include "am.h"

#define SPELL_NS INT64_C(2000000000)

static void configure(llcl_config_t *config)
{
    config->am_slots = 64;
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static void run(llcl_context_t *context)
{
    uint64_t handled = 0, sent = 0, all[17], least = UINT64_MAX, most = 0, sum = 0, i;
    uint32_t senders = llcl_size(context) - 1;
    if (llcl_rank(context) == 0)
        am_register(context, 0, handle, &handled);
    fence(context);
    if (llcl_rank(context) == 0) {
        llcl_wait_word(context, &handled, UINT64_MAX, SPELL_NS);
    } else {
        int64_t end = now_ns() + SPELL_NS;
        while (now_ns() < end) {
            llcl_am_params_t am = am_to(0, 0, &sent, sizeof sent);
            CHECK_OK(llcl_am_async(context, &am));
            sent++;
        }
    }
    CHECK_OK(llcl_exchange(context, &sent, sizeof sent, all));
    if (llcl_rank(context) != 0)
        return;
    for (i = 1; i <= senders; i++) {
        sum += all[i];
        least = all[i] < least ? all[i] : least;
        most = all[i] > most ? all[i] : most;
        printf("%llu ", (unsigned long long)all[i]);
    }
    printf("\nslowest %llu, mean %llu, fastest %llu: slowest/mean %.2f\n", (unsigned long long)least,
           (unsigned long long)(sum / senders), (unsigned long long)most,
           (double)least * senders / (double)sum);
    CHECK(least * senders * 2 >= sum);
    AM_AWAIT(context, &handled, sum);
    CHECK_EQUAL(word_get(&handled), sum);
}

TEST_MAIN_CONFIG(run, configure)
