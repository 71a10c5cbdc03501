/* Broken if this fails: a random mixture of messages between four ranks, one of which is killed
 * (kill -9) at a random moment, loses, doubles or changes a message between the survivors, leaves a
 * request to the dead one without its end, or locks up. Rounds over modes, policies and 1 to 64
 * slots.
 * kind: alone
 * modes: auto
 * timeout: 120
 */
#include "am_kill.h"
#include "am_soak.h"

#define RANKS 4
#define TOTAL 200u

struct totals {
    struct soak *soak;
    uint64_t from[RANKS], count;
};

static void total(llcl_am_t *message, void *data)
{
    struct totals *totals = data;
    uint64_t count;
    memcpy(&count, am_header(message, NULL), sizeof count);
    word_set(&totals->from[am_source(message)], count);
    word_add(&totals->count, 1);
}

static void check(struct soak *soak, struct totals *totals)
{
    uint32_t i;
    for (i = 0; i < RANKS; i++) {
        uint64_t count = word_get(&soak->accepted[i]);
        llcl_am_params_t am = am_to(i, TOTAL, &count, sizeof count);
        if (i != soak->victim)
            CHECK_OK(llcl_am(soak->context, &am));
    }
    CHECK_OK(llcl_wait_word(soak->context, &totals->count, RANKS - 1, 8 * SECOND));
    for (i = 0; i < RANKS; i++) {
        if (i == soak->victim)
            continue;
        CHECK_OK(llcl_wait_word(soak->context, &soak->handled_from[i], totals->from[i], 8 * SECOND));
        CHECK_EQUAL(word_get(&soak->handled_from[i]), totals->from[i]);
    }
}

static void run(llcl_context_t *context)
{
    uint64_t seed = kill_seed();
    struct soak *soak = soak_begin(context, seed);
    struct totals *totals = am_new(sizeof *totals);
    struct killing killing;
    pthread_t killer, server;
    llcl_stats_t stats;
    totals->soak = soak;
    soak->deaths = 1;
    soak->victim = (uint32_t)(seed / 4 % RANKS);
    am_register(context, TOTAL, total, totals);
    fence(context);
    killing = (struct killing){context, soak->victim, 0, NULL};
    killing.at = now_ns() + (int64_t)(seed / 16 % 60000) * 1000;
    CHECK(pthread_create(&server, NULL, soak_server, soak) == 0);
    if (soak->me == (soak->victim + 1) % RANKS)
        CHECK(pthread_create(&killer, NULL, kill_and_tell, &killing) == 0);
    soak_send_for(soak, soak->me == soak->victim ? 8 * SECOND : SECOND / 10);
    if (soak->me == soak->victim)
        test_fail(__FILE__, __LINE__, "the victim was not killed");
    if (soak->me == (soak->victim + 1) % RANKS)
        CHECK(pthread_join(killer, NULL) == 0);
    check(soak, totals);
    word_set(&soak->over, 1);
    CHECK(pthread_join(server, NULL) == 0);
    while (soak_serve(soak))
        ;
    stats = am_stats(context);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap 0 skips %llu\n", soak->me, (unsigned long long)stats.skips);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"am_soak_kill", RANKS, 18, am_kill_set_up, run, 0};
    return kill_main(&plan, count, arguments);
}
