/* The largest eigenvalue of a matrix whose rows are spread over the ranks, by power iteration. It
 * makes two plans once and runs them in every step. While the parts of the vector travel, no rank
 * needs to call the library.
 * Run: llcl-run -n 4 ./power_iteration */
#include <llcl.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 25, STEPS = 200 }; /* rows of each rank */

int main(void)
{
    llcl_context_t *context;
    llcl_team_t *team;
    LLCL_CHECK(llcl_init(NULL, &context));
    LLCL_CHECK(llcl_team_world(context, &team));
    size_t rank = llcl_team_rank(team), columns = (size_t)llcl_team_size(team) * ROWS, i, j;

    /* One region holds the whole vector, this rank's part of the next vector, the square of that
     * part, and the sum of all squares. */
    llcl_region_t *region;
    LLCL_CHECK(llcl_region_allocate(context, (columns + ROWS + 2) * sizeof(double), 0, &region));
    double *vector = llcl_region_address(region), *part = vector + columns, *square = part + ROWS;
    double *sum = square + 1;

    llcl_coll_params_t params = {.team = team, .type = LLCL_TYPE_F64, .op = LLCL_OP_ADD, .count = ROWS};
    llcl_coll_t *gather, *norm;
    llcl_local_t place = llcl_region_local(region, 0);
    params.send = llcl_local_at(place, columns * sizeof(double));
    params.receive = place;
    LLCL_CHECK(llcl_allgather_init(&params, &gather));
    params.count = 1;
    params.send = llcl_local_at(place, (columns + ROWS) * sizeof(double));
    params.receive = llcl_local_at(place, (columns + ROWS + 1) * sizeof(double));
    LLCL_CHECK(llcl_allreduce_init(&params, &norm));

    for (i = 0; i < ROWS; i++)
        part[i] = 1.0;
    for (int step = 0; step < STEPS; step++) {
        LLCL_CHECK(llcl_coll_start(gather));
        for (*square = 0, i = 0; i < ROWS; i++) /* while the allgather runs */
            *square += part[i] * part[i];
        LLCL_CHECK(llcl_coll_start(norm));
        LLCL_CHECK(llcl_coll_wait(gather, -1));
        LLCL_CHECK(llcl_coll_wait(norm, -1));
        for (i = 0; i < ROWS; i++) { /* the matrix has 2 on the diagonal and 1 beside it */
            size_t row = rank * ROWS + i;
            for (part[i] = 0, j = row > 0 ? row - 1 : 0; j <= row + 1 && j < columns; j++)
                part[i] += (row == j ? 2.0 : 1.0) * vector[j] / sqrt(*sum);
        }
    }
    if (rank == 0)
        printf("%zu rows, largest eigenvalue about %.2f\n", columns, sqrt(*sum));

    LLCL_CHECK(llcl_coll_free(gather));
    LLCL_CHECK(llcl_coll_free(norm));
    LLCL_CHECK(llcl_finalize(context));
    return 0;
}
