#include "coll_peers.h"

#include <stdlib.h>
#include <string.h>

static peer_row_t *row_of(peers_t *peers, const char *mpi, const char *form, coll_op_t op, size_t size)
{
    for (int i = 0; i < peers->count; i++) {
        peer_row_t *row = &peers->rows[i];
        if (row->op == op && row->size == size && strcmp(row->mpi, mpi) == 0 && strcmp(row->form, form) == 0)
            return row;
    }
    peers->rows = realloc(peers->rows, (size_t)(peers->count + 1) * sizeof *peers->rows);
    if (peers->rows == NULL)
        bench_die("no memory for the figures of the MPIs");
    peer_row_t *row = &peers->rows[peers->count++];
    memset(row, 0, sizeof *row);
    snprintf(row->mpi, sizeof row->mpi, "%s", mpi);
    snprintf(row->form, sizeof row->form, "%s", form);
    row->op = op;
    row->size = size;
    return row;
}

/* "MPI|mpi-version,NUMBER", or "MPI|mpi-failed,EXIT CODE" behind rows of which some are missing. */
static void take_version(peers_t *peers, const char *line)
{
    char mpi[16], number[24], text[64];
    if (sscanf(line, "%15[^|]|mpi-version,%23[^\n]", mpi, number) == 2)
        snprintf(text, sizeof text, "%s %s", mpi, number);
    else if (sscanf(line, "%15[^|]|mpi-failed,%23[^\n]", mpi, number) == 2)
        snprintf(text, sizeof text, "%s FAILED (exit code %s)", mpi, number);
    else
        return;
    size_t used = strlen(peers->versions);
    if (strstr(peers->versions, text) == NULL)
        snprintf(peers->versions + used, sizeof peers->versions - used, "%s%s", used ? ", " : "", text);
}

/* "MPI|mpi,OPERATION,SIZE,FORM,init us,start ns,alone us,loop us",
 * "MPI|mpi-wrong,OPERATION,SIZE,FORM" or "MPI|mpi-overlap,OPERATION,SIZE,FORM,pure us,total
 * us,percent" */
static void take(peers_t *peers, const char *line)
{
    char mpi[16], kind[16], name[24], form[24];
    size_t size;
    double v[PEER_VALUES];
    take_version(peers, line);
    if (sscanf(line, "%15[^|]|%15[^,],%23[^,],%zu,%23[^,\n]", mpi, kind, name, &size, form) != 5)
        return;
    int op = coll_op_by_name(name);
    if (op < 0)
        return;
    const char *rest = strstr(line, form) + strlen(form);
    peer_row_t *row = row_of(peers, mpi, form, (coll_op_t)op, size);
    if (strcmp(kind, "mpi-wrong") == 0) {
        row->wrong++;
    } else if (strcmp(kind, "mpi") == 0 && sscanf(rest, ",%lf,%lf,%lf,%lf", &v[0], &v[1], &v[2], &v[3]) == 4) {
        for (int i = 0; i < PEER_VALUES; i++)
            bench_add(&row->values[i], NAN, v[i], NAN);
    } else if (strcmp(kind, "mpi-overlap") == 0 && sscanf(rest, ",%lf,%lf,%lf", &v[0], &v[1], &v[2]) == 3) {
        bench_add(&row->values[PEER_PURE], NAN, v[0], NAN);
        bench_add(&row->values[PEER_BUSY], NAN, v[2], NAN);
    }
}

void peers_run(peers_t *peers, coll_world_t *world, const char *command, const char *arguments)
{
    if (command == NULL)
        return;
    coll_fence(world);
    if (world->rank == 0) {
        /* The MPIs must not inherit the connection to the launcher: while a process has it open,
         * the launcher does not notice the death of this rank. */
        char line[1024];
        const char *hub = getenv("LLCL_HUB_FD");
        snprintf(line, sizeof line, "%s%s%s%s %u %s", hub ? "exec " : "", hub ? hub : "", hub ? "<&-; " : "", command, world->size,
                 arguments);
        bench_unpin(); /* the command inherits the set of processors */
        FILE *output = popen(line, "r");
        if (output == NULL)
            bench_die("cannot run %s", command);
        while (fgets(line, sizeof line, output) != NULL)
            take(peers, line);
        pclose(output);
        loop_place(world->rank, world->size);
    }
    coll_fence(world);
}

void peers_free(peers_t *peers) { free(peers->rows); }

double peers_best(const peers_t *peers, const char *mpi, coll_op_t op, size_t size, int value, int repeat)
{
    double best = NAN;
    for (int i = 0; i < peers->count; i++) {
        const peer_row_t *row = &peers->rows[i];
        const bench_series_t *series = &row->values[value];
        if (row->op != op || row->size != size || row->wrong > 0 || series->repeats == 0)
            continue;
        if (mpi != NULL && strcmp(row->mpi, mpi) != 0)
            continue;
        best = fmin(best, series->ours[repeat < series->repeats ? repeat : series->repeats - 1]);
    }
    return best;
}
