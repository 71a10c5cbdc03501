/* GUPS: random updates of a table that is spread over all ranks, by 4 threads of each rank at the
 * same time. Compared with MPI_Accumulate. Each update is an exclusive or. Each rank checks that
 * its part of the table has all updates, and that the same updates a second time restore it.
 * Run: llcl-run -n 4 ./gups [updates of each thread]; or, with both ways and their rates: mpirun -n
 *      4 ./gups_mpi */
#include "world.h"
#include <pthread.h>

enum { THREADS = 4, WORDS = 1 << 16 }; /* threads and words of each rank */

static const uint64_t SEED = 88172645463325252u; /* of the first thread */

static llcl_context_t *context;
static llcl_remote_t *tables;
static size_t updates;

static uint64_t next(uint64_t x) /* Marsaglia's xorshift */
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

/* The updates of one thread. `which`: its number among the threads of all ranks. */
static void *by_llcl(void *which)
{
    uint64_t x = SEED + (uintptr_t)which, all = (uint64_t)llcl_size(context) * WORDS;
    for (size_t i = 0; i < updates; i++) {
        x = next(x);
        llcl_atomic_params_t change = {.peer = (uint32_t)(x % all / WORDS), .op = LLCL_OP_XOR, .type = LLCL_TYPE_U64, .operand = x,
            .target = llcl_at(tables[x % all / WORDS], x % WORDS * sizeof x)};
        LLCL_CHECK(llcl_atomic_async(context, &change)); /* without a completion: the flush waits for all */
    }
    LLCL_CHECK(llcl_flush_all(context));
    return NULL;
}

#ifdef WITH_MPI
static MPI_Win window;

static void *by_mpi(void *which)
{
    uint64_t x = SEED + (uintptr_t)which, all = (uint64_t)llcl_size(context) * WORDS;
    enum { BATCH = 1024 };
    static uint64_t operands[THREADS][BATCH]; /* MPI reads them until the flush */
    uint64_t *operand = operands[(uintptr_t)which % THREADS];
    for (size_t i = 0; i < updates; i++) {
        x = operand[i % BATCH] = next(x);
        MPI_Accumulate(&operand[i % BATCH], 1, MPI_UINT64_T, (int)(x % all / WORDS), (MPI_Aint)(x % WORDS), 1, MPI_UINT64_T, MPI_BXOR, window);
        if (i % BATCH == BATCH - 1)
            MPI_Win_flush_all(window);
    }
    MPI_Win_flush_all(window);
    return NULL;
}
#endif

static void meet_by_llcl(void) { LLCL_CHECK(llcl_barrier(context)); }
#ifdef WITH_MPI
/* The ranks must wait inside MPI, since ranks that wait inside the library would not make progress
 * for MPI. */
static void meet_by_mpi(void) { MPI_Barrier(MPI_COMM_WORLD), MPI_Win_sync(window); }
#endif

/* Whether this rank's part of the table has all updates of all ranks, once. */
static int has_updates(const uint64_t *table)
{
    static uint64_t expected[WORDS];
    uint64_t all = (uint64_t)llcl_size(context) * WORDS;
    for (uint64_t i = 0; i < WORDS; i++)
        expected[i] = i;
    for (uint64_t thread = 0; thread < (uint64_t)llcl_size(context) * THREADS; thread++) {
        uint64_t x = SEED + thread;
        for (size_t i = 0; i < updates; i++) {
            x = next(x);
            if (x % all / WORDS == llcl_rank(context))
                expected[x % WORDS] ^= x;
        }
    }
    return memcmp(table, expected, sizeof expected) == 0;
}

/* Runs all threads of all ranks twice, which restores `table`. Returns million updates a second, or
 * 0 if updates were lost. */
static double run(void *way(void *), void meet(void), const uint64_t *table)
{
    double start, took = 0;
    int lost = 0;
    for (int round = 0; round < 2; round++) {
        pthread_t threads[THREADS];
        meet();
        start = seconds();
        for (uintptr_t t = 0; t < THREADS; t++)
            if (pthread_create(&threads[t], NULL, way, (void *)((uintptr_t)llcl_rank(context) * THREADS + t)) != 0)
                exit(1);
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
        meet();
        took += seconds() - start;
        lost |= round == 0 && !has_updates(table);
    }
    return lost ? 0 : 2e-6 * THREADS * (double)updates * llcl_size(context) / took;
}

static int is_as_it_was(const uint64_t *table)
{
    for (uint64_t i = 0; i < WORDS; i++)
        if (table[i] != i)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    context = begin(&argc, &argv, (llcl_config_t)LLCL_CONFIG_INIT);
    updates = argument(argc, argv, 1, 10000);
    tables = zeroed(llcl_size(context), sizeof *tables);
    llcl_region_t *region;
    const char *wrong = NULL;
    LLCL_CHECK(llcl_region_allocate_shared(context, WORDS * sizeof(uint64_t), &region, tables));
    uint64_t *table = llcl_region_address(region);
    for (uint64_t i = 0; i < WORDS; i++)
        table[i] = i;
    double rate = run(by_llcl, meet_by_llcl, table);
    if (rate == 0 || !is_as_it_was(table))
        wrong = "updates by the library were lost";
    if (llcl_rank(context) == 0)
        printf("gups: %" PRIu32 " ranks of %d threads: %.2f million updates a second by the library", llcl_size(context), THREADS, rate);
#ifdef WITH_MPI
    MPI_Win_allocate(WORDS * sizeof(uint64_t), sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &table, &window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (uint64_t i = 0; i < WORDS; i++)
        table[i] = i;
    MPI_Win_sync(window);
    double by_accumulate = run(by_mpi, meet_by_mpi, table);
    if (by_accumulate == 0 || !is_as_it_was(table))
        wrong = "updates by MPI were lost";
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    if (llcl_rank(context) == 0)
        printf(", %.2f by MPI, ratio %.1f", by_accumulate, rate / by_accumulate);
#endif
    if (llcl_rank(context) == 0)
        printf("\n");
    free(tables);
    return end(context, wrong);
}
