/* Measures every algorithm of every collective operation with this number of ranks, and appends the
 * quickest ones to a table for LLCL_COLL_TABLE: llcl-run -n 4 tune FILE, or tune FILE allgather
 * alltoall for these operations only. Run it with few ranks first and many last, because the first
 * row of the table that fits wins. Over nodes: LLCL_NODE_ID=0,0,1,1 mpirun -n 4 tune FILE, or
 * modules/mpi/tests/in_namespaces; such rows are for teams over nodes only. */
#include "coll_world.h"

#include <string.h>

#define BUDGET_MS 4
#define WORTH_A_CHANGE 0.95 /* being less than 5 % quicker than the algorithm of the size before counts as noise */

static const size_t sizes[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
#define SIZES (sizeof sizes / sizeof *sizes)
#define MOST_BUFFER ((size_t)8 << 20)
#define MANY 16 /* with more ranks than this fewer sizes are measured, 8 B, 1 KiB and 64 KiB: making a plan takes long */
#define VERY_MANY 64 /* and with more than this 8 B and 64 KiB */

/* The time of a round alone plus that of one in a loop, in ns; infinite if the algorithm does not
 * support the case. All ranks get the same value. */
static double cost(coll_world_t *world, coll_op_t op, size_t size, const char *name)
{
    coll_plan_t plan;
    if (!coll_plan(world, op, size, LLCL_ENGINE_OFFLOAD, name, llcl_no_completion(), &plan))
        return INFINITY;
    loop_form_t form = coll_form(&plan);
    loop_result_t alone = loop_run(&world->loop, &form, LOOP_ALONE, 0, BUDGET_MS);
    loop_result_t loop = loop_run(&world->loop, &form, LOOP_ROUNDS, 0, BUDGET_MS);
    coll_unplan(&plan);
    return loop_total(&world->loop, &alone) + loop_total(&world->loop, &loop);
}

/* The index of the quickest algorithm, or that of the size before if the gain is less than
 * WORTH_A_CHANGE asks for. */
static int best_of(coll_world_t *world, coll_op_t op, size_t size, const char *const *names, int before)
{
    int best = before;
    double least = before < 0 ? INFINITY : WORTH_A_CHANGE * cost(world, op, size, names[before]);
    for (int n = 0; names[n] != NULL; n++) {
        double time = n == before ? INFINITY : cost(world, op, size, names[n]);
        if (best < 0 || time < least) {
            best = n;
            least = time;
        }
    }
    return best;
}

static void row(FILE *to, const coll_world_t *world, coll_op_t op, size_t bytes, const char *name)
{
    if (to == NULL)
        return;
    if (bytes == 0)
        fprintf(to, "%-15s %4u %9s  %-19s %s\n", coll_op_name(op), world->size, "-", name, world->reach);
    else
        fprintf(to, "%-15s %4u %9zu  %-19s %s\n", coll_op_name(op), world->size, bytes, name, world->reach);
    fflush(to);
}

static int fits(coll_op_t op, size_t size, uint32_t ranks)
{
    return coll_send_bytes(op, size, ranks) <= MOST_BUFFER && coll_receive_bytes(op, size, ranks) <= MOST_BUFFER;
}

static void tune(coll_world_t *world, coll_op_t op, const char *const *names, FILE *to)
{
    int before = -1;
    size_t step = world->size > VERY_MANY ? 6 : world->size > MANY ? 3 : 1;
    for (size_t s = 0; s < SIZES && (s == 0 || fits(op, sizes[s], world->size)); s += step) {
        int best = best_of(world, op, op == COLL_BARRIER ? 0 : sizes[s], names, before);
        if (before >= 0 && best != before)
            row(to, world, op, sizes[s - step], names[before]);
        before = best;
        if (op == COLL_BARRIER)
            break;
    }
    row(to, world, op, 0, names[before]);
}

/* Whether the command line names the operation, or names none. */
static int wanted(coll_op_t op, char **names)
{
    char **name = names;
    while (*name != NULL && strcmp(*name, coll_op_name(op)) != 0)
        name++;
    return *names == NULL || *name != NULL;
}

int main(int argc, char **argv)
{
    static coll_world_t world;
    bench_options_t options = {.program = "tune", .mode = "auto"};
    FILE *to = NULL;
    if (argc < 2)
        bench_die("usage: llcl-run -n RANKS tune FILE [OPERATION...]");
    coll_open(&world, &options, MOST_BUFFER);
    if (world.rank == 0 && (to = fopen(argv[1], "a")) == NULL)
        bench_die("tune: cannot write %s", argv[1]);
    for (int op = 0; op < COLL_OPS; op++)
        if (wanted((coll_op_t)op, argv + 2))
            tune(&world, (coll_op_t)op, coll_algorithms((coll_op_t)op), to);
    if (to != NULL && fclose(to) != 0)
        bench_die("tune: cannot write %s", argv[1]);
    coll_close(&world);
    return 0;
}
