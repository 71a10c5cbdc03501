/* How much of a collective's time overlaps with the computation of main threads; and how soon a
 * broadcast arrives at main threads that compute and never call the library, when the delivering
 * thread or the progress threads run its steps. */
#include "coll_peers.h"
#include "overlap.h"

#include <stdlib.h>
#include <string.h>

#define BUDGET_MS 6
#define MOST_CELLS 96

static const char *about = "Collectives beside computation.";

/* One operation, size and engine. */
typedef struct cell {
    coll_op_t op;
    size_t size;
    uint32_t engine;
    int heap; /* buffers from the heap; otherwise allocated by the library */
    bench_series_t pure, half_pure, half, left, full;
} cell_t;

static const uint32_t engines[] = {LLCL_ENGINE_OFFLOAD, LLCL_ENGINE_THREAD};

static void emit(const char *what, const char *unit, size_t size, const char *limit_name, const char *target,
                 const bench_series_t *series)
{
    bench_record_t record = {.what = what, .unit = unit, .limit_name = limit_name, .target = target, .size = size, .ranks = 2,
                             .threads = 1, .file_only = target == NULL, .series = *series};
    bench_emit(&record);
}

/* ---- overlap ---- */

static void measure_cell(coll_world_t *world, cell_t *cell)
{
    coll_plan_t plan;
    coll_use(world, cell->heap);
    coll_plan(world, cell->op, cell->size, cell->engine, NULL, llcl_no_completion(), &plan);
    loop_form_t form = coll_form(&plan);
    if (cell->pure.repeats == 0 && !coll_is_right(world, &form, cell->op, cell->size))
        bench_die("overlap: a wrong result");
    loop_overlap_t half = loop_overlap(&world->loop, &form, LOOP_IN_TURNS, BUDGET_MS);
    loop_overlap_t left = loop_overlap(&world->loop, &form, LOOP_LEFT_TO_KERNEL, BUDGET_MS);
    loop_overlap_t full = loop_overlap(&world->loop, &form, LOOP_ALL_BUSY, BUDGET_MS);
    coll_unplan(&plan);
    coll_use(world, 0);
    bench_add(&cell->pure, NAN, full.pure / 1000, NAN);
    bench_add(&cell->half_pure, NAN, half.pure / 1000, NAN);
    bench_add(&cell->half, NAN, half.percent, NAN);
    bench_add(&cell->left, NAN, left.percent, NAN);
    bench_add(&cell->full, NAN, full.percent, NAN);
}

static int make_cells(cell_t *cells, int quick)
{
    size_t sizes[COLL_MOST_SIZES];
    int count = 0, of_each = coll_overlap_sizes(quick, sizes);
    for (int op = 0; op < COLL_OPS; op++)
        for (int i = 0; coll_op_overlaps((coll_op_t)op) && i < of_each; i++)
            for (int e = 0; e < 2; e++)
                for (int heap = 0; heap < 2 - e; heap++)
                    cells[count++] = (cell_t){.op = (coll_op_t)op, .size = sizes[i], .engine = engines[e], .heap = heap};
    return count;
}

static void table(const cell_t *cells, int count, const peers_t *peers)
{
    static const char *const format = "%-12s %9zu  %-10s %-14s %10.3f %10.1f %10.3f %10.1f %10.1f\n";
    static const char *const half_format = "%-12s %9zu  %-10s %-14s %10.3f %10.1f %10s %10s %10s\n";
    printf("\nOverlap of collectives with computation.  [2 ranks on %d cores; medians]\n", bench_cores());
    printf("%-12s %9s  %-10s %-14s %10s %10s %10s %10s %10s\n", "", "", "", "", "all", "busy", "half", "in turns", "kernel's");
    printf("%-12s %9s  %-10s %-14s %10s %10s %10s %10s %10s\n", "operation", "bytes", "who", "how", "alone us", "%", "alone us", "%", "%");
    for (int i = 0; i < count; i++) {
        const cell_t *cell = &cells[i];
        printf(format, coll_op_name(cell->op), cell->size, coll_engine_name(cell->engine),
               cell->heap ? "heap" : "persistent", bench_median(&cell->pure),
               bench_median(&cell->full), bench_median(&cell->half_pure), bench_median(&cell->half), bench_median(&cell->left));
        for (int k = 0; cell->engine == LLCL_ENGINE_THREAD && k < peers->count; k++) {
            const peer_row_t *row = &peers->rows[k];
            if (row->op == cell->op && row->size == cell->size && row->wrong == 0)
                printf(half_format, coll_op_name(row->op), row->size, row->mpi, row->form, bench_median(&row->values[PEER_PURE]),
                       bench_median(&row->values[PEER_BUSY]), "-", "-", "-");
        }
    }
    printf("  MPIs: %s. heap: the buffers of the plan are registered memory; else allocated by the library.\n",
           peers->versions[0] ? peers->versions : "none");
    printf("  Per cent of the time alone that is hidden behind work of that length, 100 (1 - (total - work) / alone). No main\n"
           "  thread is in the library between start and wait; the ranks meet before each round.\n"
           "  all busy: each main thread computes on a core of its own. half: both share one core, the library's threads have the other one;\n"
           "  in turns, several in a round, or as the kernel lets them: mostly one does all of its work before the other one has started.\n"
           "  alone us: of the same placement. The MPIs have no thread here that could use a free core.\n");
}

static void emit_cells(const cell_t *cells, int count, const peers_t *peers)
{
    char what[96];
    for (int i = 0; i < count; i++) {
        const cell_t *cell = &cells[i];
        bench_set_mode(coll_engine_name(cell->engine));
        const char *name = coll_op_name(cell->op), *heap = cell->heap ? "; heap" : "";
        int asked = cell->size >= 65536 && cell->engine == LLCL_ENGINE_OFFLOAD && bench_cores() > 1;
        snprintf(what, sizeof what, "%s%s; overlap; all busy", name, heap);
        emit(what, "%", cell->size, NULL, NULL, &cell->full);
        snprintf(what, sizeof what, "%s%s; alone", name, heap);
        emit(what, "us", cell->size, NULL, NULL, &cell->pure);
        snprintf(what, sizeof what, "%s%s; overlap; half load", name, heap);
        emit(what, "%", cell->size, NULL, asked ? "value>=80" : NULL, &cell->half);
        snprintf(what, sizeof what, "%s%s; overlap; half load, left to the kernel", name, heap);
        emit(what, "%", cell->size, NULL, NULL, &cell->left);
        snprintf(what, sizeof what, "%s%s; half load; alone", name, heap);
        emit(what, "us", cell->size, NULL, NULL, &cell->half_pure);
    }
    for (int k = 0; k < peers->count; k++) {
        const peer_row_t *row = &peers->rows[k];
        char mode[48];
        if (row->wrong > 0)
            continue;
        snprintf(mode, sizeof mode, "%s %s", row->mpi, row->form);
        bench_set_mode(mode);
        snprintf(what, sizeof what, "%s; overlap; all busy", coll_op_name(row->op));
        emit(what, "%", row->size, NULL, NULL, &row->values[PEER_BUSY]);
    }
}

/* ---- engine against engine ---- */

/* Both main threads compute; see overlap_past. */
static void past_computing(coll_world_t *world, const bench_options_t *options)
{
    static const size_t sizes[] = {8, 1024, 65536, 1048576};
    static const char *const names[] = {"until the data is there", "until its word says so"};
    for (int s = 0; s < 4; s++)
        for (int completed = 0; completed < 2; completed++) {
            bench_series_t both = {0}, offload = {0};
            for (int r = 0; r < options->repeats; r++) {
                double ns[2];
                for (int e = 0; e < 2; e++)
                    ns[e] = overlap_past(world, sizes[s], engines[e], completed, options->quick ? 30 : 60);
                bench_add(&both, ns[0] / 1000, ns[1] / 1000, NAN);
                bench_add(&offload, NAN, ns[0] / 1000, NAN);
            }
            char what[96];
            snprintf(what, sizeof what, "broadcast; all compute; %s", names[completed]);
            bench_set_mode("offload");
            emit(what, "us", sizes[s], NULL, completed && sizes[s] <= 1024 && bench_cores() > 1 ? "value<=5" : NULL, &offload);
            bench_set_mode("thread");
            emit(what, "us", sizes[s], "engine offload", NULL, &both);
        }
}

/* Both main threads wait. */
static void waiting(coll_world_t *world, const bench_options_t *options)
{
    static const size_t sizes[] = {8, 1024, 65536, 1048576, 16777216, 134217728};
    for (int s = 0; s < 6; s++) {
        bench_series_t both = {0}, offload = {0};
        for (int r = 0; r < options->repeats; r++) {
            double us[2];
            for (int e = 0; e < 2; e++) {
                coll_plan_t plan;
                coll_plan(world, COLL_BROADCAST, sizes[s], engines[e], NULL, llcl_no_completion(), &plan);
                loop_form_t form = coll_form(&plan);
                us[e] = loop_run(&world->loop, &form, LOOP_ALONE, 0, 3 * BUDGET_MS).middle / 1000;
                coll_unplan(&plan);
            }
            bench_add(&both, us[0], us[1], NAN);
            bench_add(&offload, NAN, us[0], NAN);
        }
        bench_set_mode("offload");
        emit("broadcast; all wait", "us", sizes[s], NULL, NULL, &offload);
        bench_set_mode("thread");
        emit("broadcast; all wait", "us", sizes[s], "engine offload", NULL, &both);
    }
}

int main(int argc, char **argv)
{
    static cell_t cells[MOST_CELLS];
    bench_options_t options = bench_parse(argc, argv, about);
    options.repeats = options.quick ? 1 : options.repeats > 3 ? 3 : options.repeats;
    coll_world_t world;
    peers_t peers = {0};
    coll_open(&world, &options, (size_t)128 << 20);
    if (world.size != 2)
        bench_die("overlap: %u ranks, expected 2", world.size);
    int count = make_cells(cells, options.quick);
    char arguments[32];
    snprintf(arguments, sizeof arguments, "-o -b %d%s", BUDGET_MS, options.quick ? " -q" : "");
    peers_run(&peers, &world, options.peers, arguments);
    for (int r = 0; r < options.repeats; r++)
        for (int i = 0; i < count; i++)
            measure_cell(&world, &cells[i]);
    if (options.show)
        table(cells, count, &peers);
    bench_set_mode("auto");
    bench_begin(&options, "Collectives beside computation: what is asked for, and engine against engine (limit: engine offload).");
    emit_cells(cells, count, &peers);
    past_computing(&world, &options);
    waiting(&world, &options);
    bench_note("all compute: from the root's start; the main threads never call the library until the data is at the other rank");
    if (bench_cores() < 2)
        bench_note("one core only: no core is left for the library's threads, so the rows of overlap say nothing and have no target");
    bench_end();
    coll_close(&world);
    peers_free(&peers);
    return 0;
}
