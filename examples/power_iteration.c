/* The largest eigenvalue of a matrix whose rows are spread over the ranks, by power iteration: two plans,
 * made once and run in every step. While the parts of the vector travel, nobody need call the library.
 * Run: llcl-run -n 4 ./power_iteration */
#include <llcl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 25, STEPS = 200 }; /* rows of each rank */

static void check(llcl_status_t status, const char *what)
{
    if (status != LLCL_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, llcl_status_string(status), llcl_last_error());
        exit(1);
    }
}

int main(void)
{
    llcl_context_t *context;
    llcl_team_t *team;
    check(llcl_init(NULL, &context), "llcl_init");
    check(llcl_team_world(context, &team), "llcl_team_world");
    size_t rank = llcl_team_rank(team), columns = (size_t)llcl_team_size(team) * ROWS, i, j;

    /* In one region: the whole vector, this rank's part of the next one, its square, and their sum. */
    llcl_region_t *region;
    check(llcl_region_allocate(context, (columns + ROWS + 2) * sizeof(double), 0, &region), "allocate");
    double *vector = llcl_region_address(region), *part = vector + columns, *square = part + ROWS;
    double *sum = square + 1;

    llcl_coll_params_t params;
    llcl_coll_t *gather, *norm;
    memset(&params, 0, sizeof params);
    params.team = team;
    params.type = LLCL_TYPE_F64;
    params.op = LLCL_OP_ADD;
    params.count = ROWS;
    params.send = llcl_region_local(region, columns * sizeof(double));
    params.receive = llcl_region_local(region, 0);
    check(llcl_allgather_init(&params, &gather), "llcl_allgather_init");
    params.count = 1;
    params.send = llcl_region_local(region, (columns + ROWS) * sizeof(double));
    params.receive = llcl_region_local(region, (columns + ROWS + 1) * sizeof(double));
    check(llcl_allreduce_init(&params, &norm), "llcl_allreduce_init");

    for (i = 0; i < ROWS; i++)
        part[i] = 1.0;
    for (int step = 0; step < STEPS; step++) {
        check(llcl_coll_start(gather), "llcl_coll_start");
        for (*square = 0, i = 0; i < ROWS; i++) /* beside the gathering */
            *square += part[i] * part[i];
        check(llcl_coll_start(norm), "llcl_coll_start");
        check(llcl_coll_wait(gather, -1), "llcl_coll_wait");
        check(llcl_coll_wait(norm, -1), "llcl_coll_wait");
        for (i = 0; i < ROWS; i++) { /* the matrix has 2 on the diagonal and 1 beside it */
            size_t row = rank * ROWS + i;
            for (part[i] = 0, j = row > 0 ? row - 1 : 0; j <= row + 1 && j < columns; j++)
                part[i] += (row == j ? 2.0 : 1.0) * vector[j] / sqrt(*sum);
        }
    }
    if (rank == 0)
        printf("%zu rows, largest eigenvalue about %.2f\n", columns, sqrt(*sum));

    check(llcl_coll_free(gather), "llcl_coll_free");
    check(llcl_coll_free(norm), "llcl_coll_free");
    check(llcl_finalize(context), "llcl_finalize");
    return 0;
}
