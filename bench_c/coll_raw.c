#include "coll_world.h"

#include <string.h>

#define EXCHANGES 50 /* exchanges in a batch: few, so that most batches run undisturbed */
#define BATCHES 201

/* The median of batches. The loop contains the exchange only, so it is the least that the machine
 * needs for a round. */
double raw_exchanges(coll_world_t *world)
{
    uint64_t *mine = &world->shared->loop.of[world->rank].rounds, *theirs = &world->shared->loop.of[1 - world->rank].rounds;
    double batches[BATCHES], all[LOOP_MOST_RANKS];
    loop_meet(&world->loop);
    uint64_t round = world->loop.met;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t before = bench_ticks();
        unsigned spins = 0;
        for (int k = 0; k < EXCHANGES; k++) {
            __atomic_store_n(mine, ++round, __ATOMIC_RELEASE); /* pairs with the load */
            while (__atomic_load_n(theirs, __ATOMIC_ACQUIRE) < round)
                if (++spins % 4096 == 0)
                    sched_yield();
        }
        batches[i] = (double)(bench_ticks() - before) / EXCHANGES / bench_ticks_per_ns();
    }
    world->loop.met = round;
    double median = bench_percentile(batches, BATCHES, 50);
    world->loop.gather(world->loop.self, &median, sizeof median, all);
    return fmax(all[0], all[1]);
}

static void exchange(void *self) { loop_meet(self); }

loop_form_t raw_exchange(coll_world_t *world) { return (loop_form_t){.wait = exchange, .self = &world->loop}; }

static void spin_until(const uint64_t *word, uint64_t value)
{
    for (unsigned spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; spins++)
        if (spins % 4096 == 0)
            sched_yield();
}

static void broadcast(void *self)
{
    raw_broadcast_t *raw = self;
    coll_world_t *world = raw->world;
    uint64_t round = ++world->raw_rounds;
    if (world->rank == 0) {
        spin_until(&world->shared->ready, round); /* pairs with the store below */
        memcpy(world->peer_memory, world->receive_memory, raw->size);
        __atomic_store_n(&world->shared->data, round, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&world->shared->ready, round, __ATOMIC_RELEASE);
        spin_until(&world->shared->data, round); /* pairs with the store above */
    }
}

loop_form_t raw_broadcast(raw_broadcast_t *raw) { return (loop_form_t){.wait = broadcast, .self = raw}; }

double raw_memcpy(coll_world_t *world, size_t size, double budget_ms)
{
    double mine = 0, all[LOOP_MOST_RANKS];
    if (world->rank == 0) {
        void *(*volatile copy)(void *, const void *, size_t) = memcpy; /* a call each time, as the size is not constant */
        unsigned rounds = 1;
        for (double spent = 0; spent < budget_ms * 1e6; rounds *= 2) {
            uint64_t before = bench_now_ns();
            for (unsigned i = 0; i < rounds; i++)
                copy(world->send_memory, world->receive_memory, size);
            spent = (double)(bench_now_ns() - before);
            mine = spent / rounds;
        }
    }
    world->loop.gather(world->loop.self, &mine, sizeof mine, all);
    return all[0];
}
