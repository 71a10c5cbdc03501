#include "coll_report.h"

#include <string.h>

static const char *const mpis[] = {"Open MPI", "MPICH"};
static const char *const value_names[] = {"init", "start", "alone", "loop"};
static const char *const units[] = {"us", "ns", "us", "us"};

const uint32_t coll_engines[2] = {LLCL_ENGINE_OFFLOAD, LLCL_ENGINE_THREAD};

int coll_crowded(const coll_t *coll) { return (int)coll->world.size > bench_cores(); }

/* ---- what is shown ---- */

static const char *shown(double value)
{
    static char text[8][24];
    static int next;
    char *to = text[next++ % 8];
    if (isnan(value))
        return "-";
    snprintf(to, sizeof *text, "%.*f", fabs(value) >= 100 ? 1 : fabs(value) >= 10 ? 2 : 3, value);
    return to;
}

static void line(coll_op_t op, size_t size, const char *who, const char *how, const double *v)
{
    printf("%-15s %9zu  %-10s %-21s %10s %10s %10s %10s\n", coll_op_name(op), size, who, how, shown(v[INIT]), shown(v[START]),
           shown(v[ALONE]), shown(v[LOOP]));
}

/* Only persistent forms have an init. Blocking forms have no start. */
static int has_value(const peer_row_t *row, int value)
{
    return value == INIT ? strcmp(row->form, "persistent") == 0 : value != START || strcmp(row->form, "blocking") != 0;
}

static void lines_of(const coll_t *coll, coll_op_t op, size_t size)
{
    double v[VALUES];
    for (int i = 0; i < coll->count; i++) {
        const cell_t *cell = &coll->cells[i];
        if (cell->op != op || cell->size != size || cell->algorithm[0] == '\0')
            continue;
        char how[40];
        snprintf(how, sizeof how, "%s%s%s", cell->algorithm, cell->asked == NULL && !cell->blocking ? " *" : "",
                 cell->heap ? "; heap" : "");
        for (int k = 0; k < VALUES; k++)
            v[k] = bench_median(&cell->values[k]);
        line(op, size, coll_engine_name(cell->engine), how, v);
    }
    for (int i = 0; i < coll->raws; i++) {
        const raw_t *raw = &coll->raw[i];
        if (raw->op != op || raw->size != size)
            continue;
        double game[VALUES] = {NAN, NAN, bench_median(&raw->alone), bench_median(&raw->loop)};
        double copy[VALUES] = {NAN, NAN, NAN, bench_median(&raw->copy)};
        line(op, size, "raw", op == COLL_BARRIER ? "exchange of two lines" : "flag and memcpy", game);
        if (op == COLL_BROADCAST)
            line(op, size, "raw", "memcpy", copy);
    }
    for (int i = 0; i < coll->peers.count; i++) {
        const peer_row_t *row = &coll->peers.rows[i];
        if (row->op != op || row->size != size)
            continue;
        for (int k = 0; k < VALUES; k++)
            v[k] = row->wrong == 0 && has_value(row, k) ? bench_median(&row->values[k]) : NAN;
        char how[40];
        snprintf(how, sizeof how, "%s%s", row->form, row->wrong ? ": WRONG" : "");
        line(op, size, row->mpi, how, v);
    }
}

void coll_table(const coll_t *coll)
{
    printf("\nPersistent collectives: the cost of init, start and a round.  [%u ranks on %d cores; medians, the slowest rank's]\n",
           coll->world.size, bench_cores());
    printf("%-15s %9s  %-10s %-21s %10s %10s %10s %10s\n", "operation", "bytes", "who", "how (*: by itself)", "init us", "start ns",
           "alone us", "loop us");
    for (int op = 0; op < COLL_OPS; op++) {
        size_t sizes[COLL_MOST_SIZES];
        int count = coll_sizes((coll_op_t)op, coll->world.size, coll->options.quick, sizes);
        for (int i = 0; i < count; i++)
            lines_of(coll, (coll_op_t)op, sizes[i]);
    }
    printf("  MPIs: %s.\n", coll->peers.versions[0] ? coll->peers.versions : "none");
    printf("  bytes: of the vector, or of one rank's block. start: until llcl_coll_start (MPI_Start, MPI_I...) has returned.\n"
           "  alone: start and wait, the ranks meet before each round, untimed; loop: rounds follow each other at once (with more\n"
           "  ranks than cores both are the mean, with the meeting in `alone`: a median would not show the waiting for a core).\n");
    for (int i = 0; i < coll->peers.count; i++)
        if (coll->peers.rows[i].wrong > 0) {
            printf("  WRONG: from the second round on the MPI sent the data of the first round again; such figures are not used for comparisons.\n");
            break;
        }
}

/* ---- targets ---- */

static int is_main_size(size_t size) { return size <= 1048576; }

static void emit(const coll_t *coll, const char *what, int value, size_t size, const char *limit_name, const char *target,
                 const bench_series_t *series)
{
    bench_record_t record = {.what = what, .unit = units[value], .limit_name = limit_name, .target = target, .size = size,
                             .ranks = (int)coll->world.size, .threads = 1, .file_only = target == NULL, .series = *series};
    bench_emit(&record);
}

/* Compares with the best time of any MPI in any form. With more ranks than cores it compares rounds
 * in a loop with Open MPI only, since MPICH does not yield. */
static void against_peers(const coll_t *coll, const cell_t *cell, int value, const char **limit_name, const char **target,
                          bench_series_t *series)
{
    const char *mpi = coll_crowded(coll) ? "Open MPI" : NULL;
    if ((coll_crowded(coll) && value != LOOP) || value < ALONE)
        return;
    for (int r = 0; r < series->repeats; r++)
        series->limit[r] = peers_best(&coll->peers, mpi, cell->op, cell->size, value, r);
    if (isnan(series->limit[0]))
        return;
    *limit_name = coll_crowded(coll) ? "Open MPI; any form" : "better of the MPIs; any form";
    if (!cell->blocking && cell->engine == LLCL_ENGINE_OFFLOAD && cell->asked == NULL && is_main_size(cell->size))
        *target = "ratio<=1";
}

/* Compares a blocking call with a round of a plan. The second and later calls run such a round. */
static void emit_blocking(const coll_t *coll, const cell_t *cell)
{
    for (int i = 0; i < coll->count; i++) {
        const cell_t *plan = &coll->cells[i];
        if (plan->blocking || plan->asked != NULL || plan->engine != cell->engine || plan->op != cell->op ||
            plan->size != cell->size || plan->heap != cell->heap)
            continue;
        bench_series_t series = cell->values[LOOP];
        memcpy(series.limit, plan->values[LOOP].ours, sizeof series.limit);
        char what[96];
        snprintf(what, sizeof what, "%s; blocking%s; loop; by a plan", coll_op_name(cell->op), cell->heap ? "; heap" : "");
        emit(coll, what, LOOP, cell->size, "round of a plan", cell->heap ? NULL : "ratio<=2", &series);
        return;
    }
}

static void emit_cell(const coll_t *coll, const cell_t *cell)
{
    if (cell->algorithm[0] == '\0')
        return;
    bench_set_mode(coll_engine_name(cell->engine));
    if (cell->blocking)
        emit_blocking(coll, cell);
    for (int value = 0; value < VALUES; value++) {
        char what[96];
        const char *limit_name = NULL, *target = NULL;
        if (cell->blocking && value < ALONE)
            continue;
        bench_series_t series = cell->values[value];
        against_peers(coll, cell, value, &limit_name, &target, &series);
        snprintf(what, sizeof what, "%s%s%s%s%s; %s", coll_op_name(cell->op), cell->asked ? " by " : "",
                 cell->asked ? cell->asked : "", cell->blocking ? "; blocking" : "", cell->heap ? "; heap" : "", value_names[value]);
        emit(coll, what, value, cell->size, limit_name, target, &series);
    }
}

/* Compares the barrier with the exchange of two cache lines, the least that a barrier can cost. */
static void emit_barrier(const coll_t *coll)
{
    const cell_t *cell = &coll->cells[0]; /* the first one: barrier, offload */
    bench_series_t series = cell->values[LOOP];
    if (coll->raws == 0)
        return;
    bench_set_mode("offload");
    memcpy(series.limit, coll->raw[0].loop.ours, sizeof series.limit);
    emit(coll, "barrier; loop; by cache lines", LOOP, 0, "exchange of two lines", "ratio<=2", &series);
}

/* The highest and the lowest cost of a start in repeat `r`, over all sizes of an operation (-1: of
 * all operations). Returns 0 if there is no such repeat. */
static int range_of_start(const coll_t *coll, int op, uint32_t engine, int r, double *high, double *low)
{
    *high = *low = NAN;
    for (int i = 0; i < coll->count; i++) {
        const cell_t *cell = &coll->cells[i];
        if ((op < 0 || (int)cell->op == op) && cell->engine == engine && cell->asked == NULL && !cell->heap && !cell->blocking &&
            r < cell->values[START].repeats) {
            *high = fmax(*high, cell->values[START].ours[r]);
            *low = fmin(*low, cell->values[START].ours[r]);
        }
    }
    return !isnan(*high);
}

/* The targets for a start: a highest cost, and about the same cost for all sizes. */
static void emit_start(const coll_t *coll, int op, uint32_t engine)
{
    bench_series_t most = {0}, spread = {0}, ratio = {0};
    double high, low;
    for (int r = 0; range_of_start(coll, op, engine, r, &high, &low); r++) {
        bench_add(&most, coll->raws > 0 && r < coll->raw[0].loop.repeats ? coll->raw[0].loop.ours[r] * 1000 : NAN, high, NAN);
        bench_add(&spread, NAN, high - low, NAN);
        bench_add(&ratio, low, high, NAN);
    }
    const char *name = op < 0 ? "any operation" : coll_op_name((coll_op_t)op);
    int asked = !coll_crowded(coll) && engine == LLCL_ENGINE_OFFLOAD && op < COLL_MAIN_SET;
    char what[96];
    snprintf(what, sizeof what, "%s; start; most of all sizes", name);
    emit(coll, what, START, 0, coll->raws > 0 ? "exchange of two lines" : NULL, asked ? "value<=150" : NULL, &most);
    if (op < 0)
        return;
    int close = bench_median(&spread) <= 30; /* ns; the ratio of such small costs is noise */
    snprintf(what, sizeof what, "%s; start; most %s least", name, close ? "less" : "by");
    emit(coll, what, START, 0, close ? NULL : "least", asked ? close ? "value<=30" : "ratio<=1.5" : NULL,
         close ? &spread : &ratio);
}

static void emit_others(const coll_t *coll)
{
    bench_set_mode("raw");
    for (int i = 0; i < coll->raws; i++) {
        const raw_t *raw = &coll->raw[i];
        char what[64];
        snprintf(what, sizeof what, "%s; alone", coll_op_name(raw->op));
        emit(coll, what, ALONE, raw->size, NULL, NULL, &raw->alone);
        snprintf(what, sizeof what, "%s; loop", coll_op_name(raw->op));
        emit(coll, what, LOOP, raw->size, NULL, NULL, &raw->loop);
        if (raw->copy.repeats > 0)
            emit(coll, "memcpy", LOOP, raw->size, NULL, NULL, &raw->copy);
    }
    for (int i = 0; i < coll->peers.count; i++) {
        const peer_row_t *row = &coll->peers.rows[i];
        char mode[48], what[64];
        snprintf(mode, sizeof mode, "%s %s", row->mpi, row->form);
        bench_set_mode(mode);
        for (int value = 0; value < VALUES; value++) {
            if (row->wrong > 0 || !has_value(row, value))
                continue;
            snprintf(what, sizeof what, "%s; %s", coll_op_name(row->op), value_names[value]);
            emit(coll, what, value, row->size, NULL, NULL, &row->values[value]);
        }
    }
}

void coll_targets(const coll_t *coll)
{
    char title[160];
    snprintf(title, sizeof title, "Persistent collectives of %u ranks, engine offload: rows with a target.", coll->world.size);
    bench_set_mode("auto");
    bench_begin(&coll->options, title);
    emit_barrier(coll);
    for (int e = 0; e < 2; e++) {
        for (int op = COLL_BROADCAST; op < COLL_OPS; op++)
            emit_start(coll, op, coll_engines[e]);
        emit_start(coll, -1, coll_engines[e]);
    }
    for (int i = 0; i < coll->count; i++)
        emit_cell(coll, &coll->cells[i]);
    emit_others(coll);
    for (int i = 0; i < 2; i++) {
        int found = 0;
        for (int k = 0; k < coll->peers.count; k++)
            found |= strcmp(coll->peers.rows[k].mpi, mpis[i]) == 0;
        if (!found) {
            char note[160];
            snprintf(note, sizeof note, "%s is not installed or was not run, so no row is compared with it", mpis[i]);
            bench_note(note);
        }
    }
    bench_end();
}
