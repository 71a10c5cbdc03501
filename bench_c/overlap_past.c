#include "overlap.h"

#include <string.h>

#define SLICE_NS 100       /* work between two looks */
#define QUIET_NS 300000    /* work before a round starts */
#define GIVE_UP_NS 2e9     /* a longer round is a defect */
#define MOST_ROUNDS 200
#define ENOUGH_NS 100e6    /* no further rounds after this time, but five at least */

typedef struct past {
    coll_world_t *world;
    const coll_plan_t *plan;
    size_t size;
    int completed;
} past_t;

/* The word of the completion. It lies in the send buffer, which peers map and rank 1's broadcast
 * does not use. */
static uint64_t *word_of(const past_t *past) { return (uint64_t *)(void *)past->world->send_memory; }

/* The time at which the buffer had the round's number at both ends, or 0 if it has another number
 * somewhere. */
static uint64_t there_since(const past_t *past, uint64_t round)
{
    const uint64_t *words = (const uint64_t *)(const void *)past->world->receive_memory;
    size_t count = past->size / sizeof *words;
    if (__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) != round || __atomic_load_n(&words[count - 1], __ATOMIC_ACQUIRE) != round)
        return 0;
    uint64_t now = bench_now_ns();
    for (size_t i = 0; i < count; i++)
        if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) != round)
            return 0;
    return now;
}

static void compute_until_seen(const uint64_t *what, uint64_t at_least, uint64_t since)
{
    while (__atomic_load_n(what, __ATOMIC_ACQUIRE) < at_least) {
        loop_work(SLICE_NS);
        if ((double)(bench_now_ns() - since) > GIVE_UP_NS)
            bench_die("overlap: nobody has carried the data past the computing ranks");
    }
}

static double as_root(const past_t *past, uint64_t round)
{
    coll_shared_t *shared = past->world->shared;
    uint64_t *words = (uint64_t *)(void *)past->world->receive_memory;
    for (size_t i = 0; i < past->size / sizeof *words; i++)
        words[i] = round;
    compute_until_seen(&shared->begun, round, bench_now_ns());
    loop_work(QUIET_NS);
    uint64_t before = bench_now_ns();
    coll_must(llcl_coll_start(past->plan->plan), "llcl_coll_start");
    compute_until_seen(&shared->seen, before, before); /* a time, of the same clock */
    return (double)(__atomic_load_n(&shared->seen, __ATOMIC_ACQUIRE) - before);
}

static void as_leaf(const past_t *past, uint64_t round)
{
    coll_shared_t *shared = past->world->shared;
    __atomic_store_n(word_of(past), 0, __ATOMIC_RELAXED);
    coll_must(llcl_coll_start(past->plan->plan), "llcl_coll_start");
    __atomic_store_n(&shared->begun, round, __ATOMIC_RELEASE); /* pairs with compute_until_seen, as does the next one */
    uint64_t since = bench_now_ns(), seen;
    if (past->completed)
        compute_until_seen(word_of(past), 1, since);
    while ((seen = there_since(past, round)) == 0) {
        if (past->completed || (double)(bench_now_ns() - since) > GIVE_UP_NS)
            bench_die("overlap: rank 1 had a completion of data that is not there, or it never came");
        loop_work(SLICE_NS);
    }
    __atomic_store_n(&shared->seen, seen, __ATOMIC_RELEASE);
}

double overlap_past(coll_world_t *world, size_t size, uint32_t engine, int completed, unsigned rounds)
{
    static uint64_t number; /* of the last round */
    coll_plan_t plan;
    double times[MOST_ROUNDS], all[LOOP_MOST_RANKS];
    rounds = rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    past_t past = {world, &plan, size, completed};
    coll_plan(world, COLL_BROADCAST, size, engine, NULL, llcl_store_on(word_of(&past)), &plan);
    memset(times, 0, sizeof times);
    unsigned i = 0;
    for (uint64_t begun = bench_now_ns(); i < rounds; i++) {
        if (world->rank == 0)
            world->shared->stop = i >= 5 && (double)(bench_now_ns() - begun) > ENOUGH_NS;
        loop_meet(&world->loop); /* publishes it */
        if (world->shared->stop)
            break;
        number++;
        if (world->rank == 0)
            times[i] = as_root(&past, number);
        else
            as_leaf(&past, number);
        coll_must(llcl_coll_wait(plan.plan, -1), "llcl_coll_wait");
    }
    loop_meet(&world->loop);
    coll_unplan(&plan);
    double median = bench_percentile(times, i, 50);
    world->loop.gather(world->loop.self, &median, sizeof median, all);
    return all[0];
}
