/* Message rate as listing 7 of the paper measures it: every thread posts as fast as it can for a
 * fixed time. The rate is the number of completed operations divided by that time. Each thread
 * works on cache lines of its own. */
#include "world.h"

#include <pthread.h>
#include <string.h>

#define MOST_THREADS 15
#define BATCH 5000
#define BATCHES 31
#define SPACING 256 /* bytes between the words of two threads */

#define WINDOW 64 /* operations between two flushes */

typedef enum report { REPORT_NONE, REPORT_DONE, REPORT_ADD, REPORT_CALL, REPORT_FLUSH } report_t;
static const char *const report_names[] = {"completion none", "completion call or LLCL_DONE", "completion add", "completion call",
                                         "a flush for 64"};
static const char *about =
    "Message rate of 8-byte requests on mapped memory, threads posting as fast as they can (listing 7).";

typedef struct worker {
    uint64_t completed __attribute__((aligned(2 * BENCH_LINE))); /* completions count here */
    uint64_t accepted __attribute__((aligned(2 * BENCH_LINE)));
    uint64_t started; /* ns */
    const bench_world_t *world;
    bench_request_t request;
    plain_params_t plain;
    int bare;    /* the plain function instead of the library */
    int flushes; /* flush after each WINDOW of operations */
} worker_t;

static worker_t workers[MOST_THREADS];
static int stop __attribute__((aligned(2 * BENCH_LINE)));
static pthread_barrier_t gate;

static void count_one(void *data, llcl_status_t status)
{
    /* Another thread's callback may run at the same time on this word. Release: as in listing 7. */
    __atomic_fetch_add((uint64_t *)data, status == LLCL_OK ? 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

/* For a single posting thread, whose completions run one after the other. A locked instruction
 * would take as long as the rest of the request. */
static void count_alone(void *data, llcl_status_t status)
{
    uint64_t *fired = data;
    __atomic_store_n(fired, status == LLCL_OK ? *fired + 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

static void flushed_loop(worker_t *w)
{
    uint64_t accepted = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < WINDOW; i++)
            bench_post(w->world->context, BENCH_WRITE, &w->request);
        bench_check(llcl_flush(w->world->context, w->world->peer), "llcl_flush");
        accepted += WINDOW;
    }
    w->accepted = accepted;
}

/* Inlined with constant `op` and `bare`, so that each combination becomes a loop of its own. */
static inline __attribute__((always_inline)) void loop(worker_t *w, bench_op_t op, int bare)
{
    uint64_t accepted = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (bare)
            bench_plain(op, &w->plain);
        else
            bench_post(w->world->context, op, &w->request);
        accepted++;
    }
    w->accepted = accepted;
}

static void *work(void *data)
{
    worker_t *w = data;
    bench_unpin();
    pthread_barrier_wait(&gate);
    w->started = bench_now_ns();
    if (w->flushes && !w->bare) {
        flushed_loop(w);
        return NULL;
    }
    switch (w->request.op) {
    case BENCH_WRITE: w->bare ? loop(w, BENCH_WRITE, 1) : loop(w, BENCH_WRITE, 0); break;
    case BENCH_READ: w->bare ? loop(w, BENCH_READ, 1) : loop(w, BENCH_READ, 0); break;
    default: w->bare ? loop(w, BENCH_FETCH_ADD, 1) : loop(w, BENCH_FETCH_ADD, 0); break;
    }
    return NULL;
}

typedef struct rate {
    double millions;     /* operations per second of all threads together */
    double fairness;     /* slowest / fastest thread */
} rate_t;

static void prepare(worker_t *w, const bench_world_t *world, bench_op_t op, report_t report, llcl_callback_fn count, size_t offset)
{
    llcl_completion_t on_complete = report == REPORT_ADD                         ? llcl_add_on(&w->completed)
                                    : report == REPORT_CALL || report == REPORT_DONE ? llcl_callback(count, &w->completed)
                                                                             : llcl_no_completion();
    w->flushes = report == REPORT_FLUSH;
    w->world = world;
    w->request = world_request(world, op, BENCH_MAPPED, offset, 8, on_complete, report == REPORT_DONE ? LLCL_FLAG_DONE : 0);
    w->plain = world_plain(world, offset, 8);
}

static rate_t run(const bench_world_t *world, bench_op_t op, report_t report, int threads, int bare, unsigned ms)
{
    pthread_t ids[MOST_THREADS];
    memset(workers, 0, sizeof workers);
    pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
    __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < threads; i++) {
        worker_t *w = &workers[i];
        prepare(w, world, op, report, count_one, (size_t)i * SPACING);
        w->bare = bare;
        if (pthread_create(&ids[i], NULL, work, w) != 0)
            bench_die("msgrate: pthread_create of thread %d failed", i);
    }
    pthread_barrier_wait(&gate);
    bench_sleep_us(ms * 1000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (!bare)
        bench_check(llcl_flush_all(world->context), "llcl_flush_all");
    uint64_t end = bench_now_ns(), start = end; /* all operations have completed, also queued ones */
    uint64_t total = 0, least = UINT64_MAX, most = 0;
    for (int i = 0; i < threads; i++) {
        const worker_t *w = &workers[i];
        if (!bare && (report == REPORT_ADD || report == REPORT_CALL) && w->completed != w->accepted)
            bench_die("msgrate: thread %d: %llu accepted, %llu completed after the flush", i,
                      (unsigned long long)w->accepted, (unsigned long long)w->completed);
        start = w->started < start ? w->started : start; /* the workers' start times, since this thread may run late */
        total += w->accepted;
        least = w->accepted < least ? w->accepted : least;
        most = w->accepted > most ? w->accepted : most;
    }
    pthread_barrier_destroy(&gate);
    return (rate_t){(double)total / (double)(end - start) * 1e3, most ? (double)least / (double)most : NAN};
}

/* One thread, plain function and library in turn, in batches so short that most run undisturbed on
 * a busy machine. The figures are medians. A batch includes the flush of operations that were
 * queued. */
static inline __attribute__((always_inline)) double batch(const worker_t *w, bench_op_t op, int bare)
{
    uint64_t before = bench_ticks();
    for (int i = 0; i < BATCH; i++) {
        if (bare)
            bench_plain(op, &w->plain);
        else
            bench_post(w->world->context, op, &w->request);
    }
    if (!bare && w->world->execution == LLCL_EXECUTION_OFFLOAD)
        bench_check(llcl_flush(w->world->context, w->world->peer), "llcl_flush");
    return (double)(bench_ticks() - before) / BATCH / bench_ticks_per_ns();
}

static double batch_of(const worker_t *w, bench_op_t op, int bare)
{
    switch (op) {
    case BENCH_WRITE: return bare ? batch(w, BENCH_WRITE, 1) : batch(w, BENCH_WRITE, 0);
    case BENCH_READ: return bare ? batch(w, BENCH_READ, 1) : batch(w, BENCH_READ, 0);
    default: return bare ? batch(w, BENCH_FETCH_ADD, 1) : batch(w, BENCH_FETCH_ADD, 0);
    }
}

static void short_batches(const bench_world_t *world, bench_op_t op, report_t report, double *bare, double *ours)
{
    double times[2][BATCHES];
    worker_t *w = &workers[0];
    prepare(w, world, op, report, count_alone, 0);
    for (int i = 0; i < BATCHES; i++) {
        times[0][i] = batch_of(w, op, 1);
        times[1][i] = batch_of(w, op, 0);
    }
    bench_check(llcl_flush_all(world->context), "llcl_flush_all"); /* no operation accesses the worker's words after this */
    *bare = bench_percentile(times[0], BATCHES, 50);
    *ours = bench_percentile(times[1], BATCHES, 50);
}

static void emit(const bench_world_t *world, const char *what, const char *unit, int threads, const char *limit_name,
                 const char *target, const bench_series_t *series)
{
    bench_record_t record = {.what = what, .unit = unit, .limit_name = limit_name, .target = target, .size = 8,
                             .ranks = (int)world->size, .threads = threads, .count = 0, .series = *series};
    bench_emit(&record);
}

/* Every repeat measures all thread counts one after the other, so that rates of about the same time
 * are compared. */
static void measure(const bench_world_t *world, const bench_options_t *options, bench_op_t op, report_t report)
{
    static const int full[] = {1, 2, 4, 8, 15}, few[] = {1, 2, 15};
    const int *counts = options->quick ? few : full;
    int how_many = options->quick ? 3 : 5, mapped_path = world->execution != LLCL_EXECUTION_OFFLOAD;
    unsigned ms = options->quick ? 100 : 150;
    bench_series_t rates[5] = {{0}}, fair[5] = {{0}}, per_op = {0}, alone = {0}, to_best = {0};
    for (int r = 0; r < options->repeats; r++) {
        double plain, ours;
        short_batches(world, op, report, &plain, &ours);
        bench_add(&per_op, plain, ours, NAN);
        bench_add(&alone, 1e3 / plain, 1e3 / ours, NAN);
        for (int i = 0; i < how_many; i++) {
            double bare = run(world, op, report, counts[i], 1, 30).millions;
            /* Long enough for every thread to get the core some ten times. */
            rate_t rate = run(world, op, report, counts[i], 0, counts[i] >= 8 ? 3 * ms : ms);
            bench_add(&rates[i], bare, rate.millions, NAN);
            bench_add(&fair[i], NAN, rate.fairness, NAN);
        }
    }
    world_verify(world, op, BENCH_MAPPED, 8, 0);
    int best = bench_best(rates, how_many);
    for (int r = 0; r < options->repeats; r++)
        bench_add(&to_best, rates[best].ours[r], rates[how_many - 1].ours[r], NAN);
    char what[64], name[96];
    snprintf(what, sizeof what, "%s; %s", bench_op_name(op), report_names[report]);
    if (report != REPORT_FLUSH) { /* a batch has one flush at most */
        snprintf(name, sizeof name, "%s; per op", what);
        emit(world, name, "ns", 1, "plain function",
             !mapped_path                                       ? NULL
             : report == REPORT_NONE                                ? "ratio<=3"
             : op == BENCH_READ && (report == REPORT_CALL || report == REPORT_DONE) ? "value<=10"
                                                                : NULL,
             &per_op);
        snprintf(name, sizeof name, "%s; short batches", what);
        emit(world, name, "M/s", 1, "plain function",
             op == BENCH_WRITE && report == REPORT_NONE && mapped_path ? "value>=100" : NULL, &alone);
    }
    for (int i = 0; i < how_many; i++)
        emit(world, what, "M/s", counts[i], "plain function", NULL, &rates[i]);
    snprintf(name, sizeof name, "%s; 15 threads / best", what);
    /* In offload mode each flush waits for the progress thread, so the figure is no message rate
     * and has no target. */
    const char *target = report == REPORT_FLUSH && !mapped_path ? NULL : "ratio>=0.9";
    emit(world, name, "M/s", 15, "best thread count", target, &to_best);
    snprintf(name, sizeof name, "%s; slowest / fastest thread", what);
    for (int i = 1; i < how_many; i++)
        emit(world, name, "ratio", counts[i], NULL, counts[i] == 15 ? "value>=0.3" : NULL, &fair[i]);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    if (options.repeats > 5)
        options.repeats = 5;
    bench_world_t world;
    world_open(&world, &options, 16384);
    if (options.show) {
        bench_begin(&options, about);
        bench_unpin();
        if (options.quick) {
            for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
                measure(&world, &options, (bench_op_t)op, REPORT_NONE);
            measure(&world, &options, BENCH_READ, REPORT_DONE);
            measure(&world, &options, BENCH_READ, REPORT_CALL);
            measure(&world, &options, BENCH_WRITE, REPORT_FLUSH);
        } else {
            for (int op = BENCH_WRITE; op <= BENCH_FETCH_ADD; op++)
                for (int report = REPORT_NONE; report <= REPORT_FLUSH; report++)
                    if (op == BENCH_WRITE || (report != REPORT_ADD && report != REPORT_FLUSH))
                        measure(&world, &options, (bench_op_t)op, (report_t)report);
        }
        bench_note("plain function: bounds check and copy (or locked add) in C, called in the same loop by as many threads;");
        bench_note("with completion none the two do the same work. The clock stops when the last request has completed.");
        bench_note("per op and short batches: one thread, medians of batches of 5000; the other rows: a fixed time.");
        bench_end();
    }
    world_close(&world);
    return 0;
}
