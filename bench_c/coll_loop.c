#include "coll_loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ROUNDS 4000
#define MOST_ROUNDS_CROWDED 20000
#define LEAST_ROUNDS 5
#define TRIAL_ROUNDS 3
#define MOST_TURNS 4       /* most turns of a main thread on a shared core during the work of a round */
#define LEAST_TURN_NS 2000 /* so long that the switch to the other thread is a small part of a turn */
#define LEAST_WORK_NS 100

/* ---- work ---- */

static uint64_t sink;

/* A chain of multiplications, which neither compiler nor processor can shorten. */
static void __attribute__((noinline)) compute(uint64_t steps)
{
    uint64_t x = sink | 1;
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    sink = x;
}

/* From the quickest of many short runs, which was not interrupted. */
static double steps_per_ns(void)
{
    static double ratio;
    double quickest = INFINITY;
    for (int i = 0; ratio == 0 && i < 200; i++) {
        uint64_t before = bench_ticks();
        compute(5000);
        double spent = (double)(bench_ticks() - before);
        quickest = spent < quickest ? spent : quickest;
    }
    if (ratio == 0)
        ratio = 5000 / quickest * bench_ticks_per_ns();
    return ratio;
}

void loop_work(double ns) { compute((uint64_t)(ns * steps_per_ns())); }

/* ---- the loop ---- */

void *loop_common(const loop_world_t *world, size_t bytes)
{
    char name[32], names[LOOP_MOST_RANKS][32];
    snprintf(name, sizeof name, "/llcl-bench-%ld", (long)getpid());
    int file = world->rank == 0 ? shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
    if (world->rank == 0 && (file < 0 || ftruncate(file, (off_t)bytes) != 0))
        bench_die("%s: no shared memory of %zu bytes", name, bytes);
    world->gather(world->self, name, sizeof name, names);
    if (world->rank != 0)
        file = shm_open(names[0], O_RDWR, 0);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        bench_die("%s: not there, expected ranks of one machine, and nodes by LLCL_NODE_ID or by namespaces", names[0]);
    close(file);
    world->gather(world->self, name, sizeof name, names); /* all have opened it */
    if (world->rank == 0)
        shm_unlink(name);
    return memory;
}

void loop_meet(loop_world_t *world)
{
    uint64_t round = ++world->met;
    unsigned patience = world->shared_core || (int)world->size > bench_cores() ? 1 : 4096, spins = 0;
    __atomic_store_n(&world->shared->of[world->rank].rounds, round, __ATOMIC_RELEASE); /* pairs with the loads below */
    for (uint32_t rank = 0; rank < world->size; rank++)
        while (__atomic_load_n(&world->shared->of[rank].rounds, __ATOMIC_ACQUIRE) < round)
            if (++spins % patience == 0)
                sched_yield(); /* the other side may need this core */
}

void loop_once(loop_world_t *world, const loop_form_t *form)
{
    loop_meet(world);
    if (form->start != NULL)
        form->start(form->self);
    form->wait(form->self);
    loop_meet(world);
}

static double starts[MOST_ROUNDS_CROWDED], totals[MOST_ROUNDS_CROWDED];

/* Two main threads on one core shall behave like two cores of half the speed, so they take turns
 * during the work. Otherwise the kernel would let one thread do all of its work before the other
 * one starts the round. */
static void work_of(const loop_world_t *world, double work)
{
    for (unsigned turn = 0; turn < world->turns; turn++) {
        sched_yield();
        loop_work(work / world->turns);
    }
    if (world->turns == 0)
        loop_work(work);
}

static inline __attribute__((always_inline)) void one_round(const loop_world_t *world, const loop_form_t *form, double work,
                                                            uint64_t *started)
{
    if (form != NULL && form->start != NULL)
        form->start(form->self);
    if (started != NULL)
        *started = bench_ticks();
    if (work > 0)
        work_of(world, work);
    if (form != NULL)
        form->wait(form->self);
}

/* Rounds in a batch, so that there are some tens of batches. */
static unsigned batch_of(unsigned rounds) { return rounds < 400 ? rounds / 20 + 1 : 20; }

/* Returns the time of all rounds in ticks, and in `count` the number of values in `totals`. */
static double rounds_of(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work, unsigned rounds,
                        size_t *count)
{
    unsigned batch = kind == LOOP_ROUNDS ? batch_of(rounds) : 1;
    uint64_t begun = bench_ticks();
    size_t n = 0;
    for (unsigned i = 0; i + batch <= rounds; i += batch, n++) {
        uint64_t before = bench_ticks(), t0 = before, t1 = 0;
        if (kind != LOOP_ROUNDS) {
            loop_meet(world);
            t0 = bench_ticks();
        }
        for (unsigned k = 1; k < batch; k++)
            one_round(world, form, work, NULL);
        one_round(world, form, work, &t1);
        totals[n] = (double)(bench_ticks() - (kind == LOOP_WHOLE ? before : t0)) / batch;
        starts[n] = (double)(t1 - t0);
    }
    *count = n;
    return (double)(bench_ticks() - begun) / (double)(n * batch);
}

/* The mean of the middle half. */
static double middle_of(double *values, size_t count)
{
    double sum = 0;
    size_t from = count / 4, to = count - count / 4;
    bench_percentile(values, count, 50); /* sorts */
    for (size_t i = from; i < to; i++)
        sum += values[i];
    return sum / (double)(to - from);
}

static loop_result_t slowest(const loop_world_t *world, const loop_result_t *mine)
{
    loop_result_t *all = calloc(world->size, sizeof *all), most = *mine;
    if (all == NULL)
        bench_die("no memory for the results of %u ranks", world->size);
    world->gather(world->self, mine, sizeof *mine, all);
    for (uint32_t rank = 0; rank < world->size; rank++) {
        most.start = fmax(most.start, all[rank].start);
        most.middle = fmax(most.middle, all[rank].middle);
        most.mean = fmax(most.mean, all[rank].mean);
        most.p99 = fmax(most.p99, all[rank].p99);
    }
    free(all);
    return most;
}

/* The time of a round at the slowest rank, in ns, from `rounds` rounds. All ranks get the same
 * number. */
static double trial(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work, unsigned rounds)
{
    size_t count;
    loop_meet(world);
    loop_result_t mine = {.mean = rounds_of(world, form, kind, work, rounds, &count) / bench_ticks_per_ns()};
    return slowest(world, &mine).mean;
}

static int is_crowded(const loop_world_t *world) { return (int)world->size > bench_cores(); }

/* How many rounds of `ns` fit in the budget. */
static unsigned fitting(const loop_world_t *world, double budget, double ns)
{
    double fit = budget / ns, most = is_crowded(world) ? MOST_ROUNDS_CROWDED : MOST_ROUNDS;
    return fit < LEAST_ROUNDS ? LEAST_ROUNDS : (unsigned)fmin(fit, most);
}

/* How many rounds fit in the budget. Some rounds come before, which take the costs of the first
 * use. */
static unsigned rounds_within(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work,
                              double budget_ms)
{
    double budget = budget_ms * 1e6, first = trial(world, form, kind, work, 1);
    if (first > 20 * budget)
        return LEAST_ROUNDS;
    unsigned rounds = fitting(world, budget, trial(world, form, kind, work, first > budget ? 1 : TRIAL_ROUNDS));
    /* If ranks share cores, a few rounds take a time slice of each rank; of many rounds a rank does
     * tens in a slice. */
    for (unsigned before = 0; kind == LOOP_ROUNDS && is_crowded(world) && rounds / 2 > before;) {
        before = rounds;
        rounds = fitting(world, budget, trial(world, form, kind, work, rounds));
    }
    trial(world, form, kind, work, rounds / 10 + 1); /* wakes the threads that slept */
    return rounds;
}

loop_result_t loop_run(loop_world_t *world, const loop_form_t *form, loop_kind_t kind, double work, double budget_ms)
{
    double scale = bench_ticks_per_ns();
    steps_per_ns(); /* calibrates before anything is timed */
    loop_result_t mine = {.rounds = rounds_within(world, form, kind, work, budget_ms)};
    size_t count;
    loop_meet(world);
    mine.mean = rounds_of(world, form, kind, work, mine.rounds, &count) / scale;
    mine.middle = middle_of(totals, count) / scale;
    mine.start = middle_of(starts, count) / scale;
    mine.p99 = kind == LOOP_ALONE ? bench_percentile(totals, count, 99) / scale : NAN;
    return slowest(world, &mine);
}

double loop_total(const loop_world_t *world, const loop_result_t *result)
{
    return is_crowded(world) ? result->mean : result->middle;
}

/* The work for a round of two main threads on one core, so that both, with their turns, have done
 * it after twice the time `pure`, as on two cores of half the speed. */
static double work_in_turns(loop_world_t *world, double pure, double meeting, double budget_ms)
{
    double turns = pure / LEAST_TURN_NS;
    world->turns = turns < 1 ? 1 : turns > MOST_TURNS ? MOST_TURNS : (unsigned)turns;
    double changes = loop_run(world, NULL, LOOP_WHOLE, LEAST_WORK_NS, budget_ms).middle - meeting;
    return fmax(pure - changes / 2, LEAST_WORK_NS);
}

loop_overlap_t loop_overlap(loop_world_t *world, const loop_form_t *form, loop_cores_t cores, double budget_ms)
{
    loop_overlap_t result;
    loop_kind_t kind = LOOP_ALONE;
    double meeting = 0;
    int half = cores != LOOP_ALL_BUSY;
    if (half) {
        kind = LOOP_WHOLE;
        world->shared_core = 1;
        bench_pin(0);
        bench_pin_others(1);
        meeting = loop_run(world, NULL, kind, 0, budget_ms / 2).middle;
    }
    result.pure = fmax(loop_run(world, form, kind, 0, budget_ms).middle - meeting, 1);
    double work = cores == LOOP_IN_TURNS ? work_in_turns(world, result.pure, meeting, budget_ms / 2) : result.pure;
    result.compute = loop_run(world, NULL, kind, work, budget_ms).middle;
    result.total = loop_run(world, form, kind, work, budget_ms).middle;
    result.percent = 100 * (1 - (result.total - result.compute) / result.pure);
    if (half) {
        world->shared_core = 0;
        world->turns = 0;
        bench_pin_others(-1);
        loop_place(world->rank, world->size);
    }
    return result;
}

void loop_place(uint32_t rank, uint32_t size)
{
    if ((int)size <= bench_cores())
        bench_pin((int)rank);
    else
        bench_unpin();
}
