/* Persistent collectives: the cost of init, start and a round, for each operation, size, algorithm
 * and engine, beside bare loads and stores and the machine's MPIs. LLCL_NODE_ID makes several nodes
 * of one machine: LLCL_NODE_ID=0,0,1,1 mpirun -n 4 coll --transport mpi --only barrier,allreduce
 * --peers 'bench_c/peers/start DIR'. */
#include "coll_report.h"

#include <stdlib.h>
#include <string.h>

#define BUDGET_MS 6
#define CROWDED_BUDGET_MS 16 /* several time slices */
#define MOST_CELLS 1024

static const char *about = "Persistent collectives: what init, start and a round cost.";

/* ---- what is measured ---- */

/* Whether an operation is among those that --only names. */
static int wanted(const coll_t *coll, coll_op_t op)
{
    const char *name = coll_op_name(op), *at = coll->options.only;
    size_t length = strlen(name);
    if (at == NULL)
        return 1;
    for (; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

static void add_cell(coll_t *coll, coll_op_t op, size_t size, uint32_t engine, const char *asked)
{
    if (coll->count == MOST_CELLS)
        bench_die("coll: more than %d cases", MOST_CELLS);
    coll->cells[coll->count++] = (cell_t){.op = op, .size = size, .engine = engine, .asked = asked};
}

/* --chosen: plans of the engine and the algorithm that the library takes by itself, up to 1 MiB. */
static void add_chosen(coll_t *coll, coll_op_t op)
{
    size_t sizes[COLL_MOST_SIZES];
    int count = coll_sizes(op, coll->world.size, coll->options.quick, sizes);
    for (int i = 0; i < count && sizes[i] <= 1048576; i++)
        for (int heap = 0; heap < (op == COLL_BARRIER ? 1 : 2); heap++) {
            add_cell(coll, op, sizes[i], LLCL_ENGINE_OFFLOAD, NULL);
            coll->cells[coll->count - 1].heap = heap;
        }
}

static void add_defaults(coll_t *coll, coll_op_t op)
{
    size_t sizes[COLL_MOST_SIZES];
    int count = coll_sizes(op, coll->world.size, coll->options.quick, sizes);
    for (int i = 0; i < count; i++) {
        for (int e = 0; e < 2; e++)
            add_cell(coll, op, sizes[i], coll_engines[e], NULL);
        add_cell(coll, op, sizes[i], LLCL_ENGINE_OFFLOAD, NULL);
        coll->cells[coll->count - 1].blocking = 1;
        if (op == COLL_BARRIER)
            continue;
        for (int blocking = 0; blocking < 2; blocking++) {
            add_cell(coll, op, sizes[i], LLCL_ENGINE_OFFLOAD, NULL);
            coll->cells[coll->count - 1].heap = 1;
            coll->cells[coll->count - 1].blocking = blocking;
        }
    }
}

/* Each algorithm that the library has, at a small and at a large size. */
static void add_algorithms(coll_t *coll)
{
    static const size_t sizes[] = {1024, 1048576};
    for (int op = 0; op < COLL_OPS; op++)
        for (int s = 0; wanted(coll, (coll_op_t)op) && s < (op == COLL_BARRIER ? 1 : 2); s++)
            for (const char *const *name = coll_algorithms((coll_op_t)op); *name != NULL; name++)
                for (int e = 0; e < (coll->options.quick ? 1 : 2); e++)
                    add_cell(coll, (coll_op_t)op, op == COLL_BARRIER ? 0 : sizes[s], coll_engines[e], *name);
}

static int budget_of(const coll_t *coll) { return coll_crowded(coll) ? CROWDED_BUDGET_MS : BUDGET_MS; }

static void measure_cell(coll_t *coll, cell_t *cell)
{
    coll_world_t *world = &coll->world;
    coll_plan_t plan = {.init = NAN};
    coll_call_t call;
    loop_form_t form;
    coll_use(world, cell->heap);
    if (cell->blocking) {
        form = coll_blocking(world, cell->op, cell->size, &call);
        snprintf(cell->algorithm, sizeof cell->algorithm, "blocking");
    } else {
        if (!coll_plan(world, cell->op, cell->size, cell->engine, cell->asked, llcl_no_completion(), &plan))
            return;
        snprintf(cell->algorithm, sizeof cell->algorithm, "%s", plan.algorithm);
        form = coll_form(&plan);
    }
    loop_result_t alone = loop_run(&world->loop, &form, LOOP_ALONE, 0, BUDGET_MS);
    loop_result_t loop = loop_run(&world->loop, &form, LOOP_ROUNDS, 0, budget_of(coll));
    if (cell->values[INIT].repeats == 0 && !coll_is_right(world, &form, cell->op, cell->size))
        coll->wrong++;
    if (!cell->blocking)
        coll_unplan(&plan);
    coll_use(world, 0);
    bench_add(&cell->values[INIT], NAN, plan.init / 1000, NAN);
    bench_add(&cell->values[START], NAN, cell->blocking ? NAN : alone.start, NAN);
    bench_add(&cell->values[ALONE], NAN, loop_total(&world->loop, &alone) / 1000, alone.p99 / 1000);
    bench_add(&cell->values[LOOP], NAN, loop_total(&world->loop, &loop) / 1000, NAN);
}

/* The exchange of two lines, broadcasts by a flag and a copy, and copies. Only if both ranks have a
 * core of their own. */
static void measure_raw(coll_t *coll)
{
    coll_world_t *world = &coll->world;
    if (world->size != 2 || world->nodes || coll_crowded(coll))
        return;
    size_t sizes[1 + COLL_MOST_SIZES] = {0};
    coll->raws = 1 + coll_sizes(COLL_BROADCAST, 2, coll->options.quick, sizes + 1);
    for (int i = 0; i < coll->raws; i++) {
        raw_t *raw = &coll->raw[i];
        raw->op = i == 0 ? COLL_BARRIER : COLL_BROADCAST;
        raw->size = sizes[i];
        raw_broadcast_t broadcast = {world, raw->size};
        loop_form_t form = i == 0 ? raw_exchange(world) : raw_broadcast(&broadcast);
        bench_add(&raw->alone, NAN, loop_run(&world->loop, &form, LOOP_ALONE, 0, BUDGET_MS).middle / 1000, NAN);
        double loop = i == 0 ? raw_exchanges(world) : loop_run(&world->loop, &form, LOOP_ROUNDS, 0, BUDGET_MS).middle;
        bench_add(&raw->loop, NAN, loop / 1000, NAN);
        if (i > 0)
            bench_add(&raw->copy, NAN, raw_memcpy(world, raw->size, BUDGET_MS) / 1000, NAN);
    }
}

/* The MPIs and the library run in turn. An MPI that needs milliseconds for a barrier runs once. */
static void measure(coll_t *coll)
{
    int quick = coll->options.quick, repeats = quick ? 2 : coll_crowded(coll) ? 3 : 5, first = 0;
    char arguments[64];
    for (int set = 0; set < 2; set++) {
        for (int op = set == 0 ? 0 : COLL_MAIN_SET; op < (set == 0 ? COLL_MAIN_SET : COLL_OPS); op++)
            if (wanted(coll, (coll_op_t)op))
                add_defaults(coll, (coll_op_t)op);
        if (set == 1) {
            add_algorithms(coll);
            repeats = quick ? 1 : 2;
        }
        for (int r = 0; r < repeats; r++) {
            const char *who = set == 0 && r == 0 ? "--slow-too" : "";
            snprintf(arguments, sizeof arguments, "%s -s %d -b %d%s", who, set, budget_of(coll),
                     quick ? " -q" : "");
            if (set == 0 || r == 0)
                peers_run(&coll->peers, &coll->world, coll->options.peers, arguments);
            if (set == 0)
                measure_raw(coll);
            for (int i = first; i < coll->count; i++)
                measure_cell(coll, &coll->cells[i]);
        }
        first = coll->count;
    }
}

static void measure_chosen(coll_t *coll)
{
    for (int op = 0; op < COLL_OPS; op++)
        if (wanted(coll, (coll_op_t)op))
            add_chosen(coll, (coll_op_t)op);
    for (int i = 0; i < coll->count; i++)
        measure_cell(coll, &coll->cells[i]);
}

int main(int argc, char **argv)
{
    static coll_t coll;
    coll.options = bench_parse(argc, argv, about);
    coll.cells = calloc(MOST_CELLS, sizeof *coll.cells);
    if (coll.cells == NULL)
        bench_die("coll: no memory");
    coll_open(&coll.world, &coll.options, (size_t)32 << 20);
    if (coll.options.chosen)
        measure_chosen(&coll);
    else
        measure(&coll);
    if (coll.options.show) {
        coll_table(&coll);
        if (coll.options.only == NULL && !coll.options.chosen)
            coll_targets(&coll);
        if (coll.wrong > 0)
            printf("coll: %d WRONG RESULTS of the library\n", coll.wrong);
    }
    coll_close(&coll.world);
    peers_free(&coll.peers);
    free(coll.cells);
    return coll.wrong > 0;
}
