/* Conjugate gradients in Ghysels and Vanroose's pipelined form, which hides the global sums: a step
 * starts its two sums, computes the next product of matrix and vector, and then waits for the sums.
 * The sums are a persistent allreduce, compared with MPI_Iallreduce. The matrix is that of a
 * five-point stencil on a grid whose rows are spread over the ranks.
 * Run: llcl-run -n 4 ./cg [rows of each rank] [columns]; with both ways: mpirun -n 4 ./cg_mpi */
#include "world.h"
#include <math.h>

static llcl_context_t *context;
static llcl_coll_t *plan; /* computes the sums */
static double *sums;      /* in a region: this rank's two sums, then the global ones */
static size_t rows, columns;
static uint32_t rank, size;
static uint64_t products; /* the number of products so far, which the neighbours' signals must reach */
static llcl_remote_t *margins;
static double *margin;  /* the neighbours' rows for even and odd products, from above and below; then a counter for each */
static double computed; /* seconds spent in the product, during which the sums proceed */

/* q = A v. A neighbour's row arrives with a signal; even and odd products use different places. */
static void product(const double *v, double *q)
{
    uint64_t *came = (uint64_t *)(margin + 4 * columns), odd = ++products % 2;
    for (uint32_t side = 0; side < 2; side++) { /* 0: up */
        uint32_t peer = side == 0 ? rank - 1 : rank + 1;
        if (peer >= size)
            continue;
        llcl_write_signal_params_t put = {.peer = peer, .size = columns * sizeof *v, .signal_op = LLCL_SIGNAL_ADD, .signal_value = 1,
            .source = llcl_local_address(side == 0 ? v : v + (rows - 1) * columns),
            .destination = llcl_at(margins[peer], (2 * odd + 1 - side) * columns * sizeof *v),
            .signal = llcl_at(margins[peer], (4 * columns + 1 - side) * sizeof *v)};
        LLCL_CHECK(llcl_write_signal(context, &put));
    }
    for (uint32_t side = 0; side < 2; side++)
        if ((side == 0 ? rank - 1 : rank + 1) < size)
            LLCL_CHECK(llcl_wait_word(context, &came[side], products, -1));
    double start = seconds();
    for (size_t i = 0; i < rows; i++) {
        const double *here = v + i * columns;
        const double *up = i > 0 ? here - columns : margin + 2 * odd * columns;
        const double *down = i + 1 < rows ? here + columns : margin + (2 * odd + 1) * columns;
        for (size_t j = 0; j < columns; j++)
            q[i * columns + j] = 4.1 * here[j] - up[j] - down[j] - (j > 0 ? here[j - 1] : 0) - (j + 1 < columns ? here[j + 1] : 0);
    }
    computed += seconds() - start;
}

/* The ways to compute the sums: a function that starts, and one that waits. */
static void start_llcl(void) { LLCL_CHECK(llcl_coll_start(plan)); }
static void wait_llcl(void) { LLCL_CHECK(llcl_coll_wait(plan, -1)); }
static void at_once_llcl(void) { start_llcl(), wait_llcl(); }
static void nothing(void) { }
#ifdef WITH_MPI
static MPI_Request request;
static void start_mpi(void) { MPI_Iallreduce(sums, sums + 2, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request); }
static void wait_mpi(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
static void at_once_mpi(void) { start_mpi(), wait_mpi(); }
#endif

static double of_all(double mine)
{
    double all[size], sum = 0;
    LLCL_CHECK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    for (uint32_t i = 0; i < size; i++)
        sum += all[i];
    return sum / size;
}

/* Solves A x = b for the b of x = 1. Returns the number of steps, or 0 if x is wrong. Sets `each`
 * to the seconds that a thread spends on the sums of a step, as the mean over the ranks, since the
 * rank that comes last does not wait. */
static size_t solve(void start(void), void wait(void), double *each)
{
    size_t n = rows * columns, steps = 0, wrong = 0;
    double *x = zeroed(7 * n, sizeof *x), *r = x + n, *w = r + n, *z = w + n, *s = z + n, *p = s + n, *q = p + n;
    double gamma = 0, alpha = 0, beta, begun, took = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = 1;
    product(x, r); /* r = b - A 0 */
    memset(x, 0, n * sizeof *x);
    product(r, w);
    do {
        sums[0] = sums[1] = 0;
        for (size_t i = 0; i < n; i++)
            sums[0] += r[i] * r[i], sums[1] += w[i] * r[i];
        begun = seconds();
        start();
        took += seconds() - begun;
        product(w, q);
        begun = seconds();
        wait();
        took += seconds() - begun;
        beta = steps > 0 ? sums[2] / gamma : 0;
        alpha = sums[2] > 0 ? sums[2] / (sums[3] - (steps > 0 ? beta * sums[2] / alpha : 0)) : 0; /* 0: x is exact */
        gamma = sums[2];
        for (size_t i = 0; i < n; i++) {
            z[i] = q[i] + beta * z[i], s[i] = w[i] + beta * s[i], p[i] = r[i] + beta * p[i];
            x[i] += alpha * p[i], r[i] -= alpha * s[i], w[i] -= alpha * z[i];
        }
    } while (++steps < 1000 && gamma > 1e-16 * (double)n);
    for (size_t i = 0; i < n; i++)
        wrong += !(fabs(x[i] - 1) < 1e-6); /* also if x is no number */
    free(x);
    *each = of_all(took / (double)steps);
    return wrong == 0 ? steps : 0;
}

/* Solves in turn with blocking and with hidden sums. Prints both costs, the fastest of 5 rounds. */
static const char *compare(const char *by, void start(void), void wait(void), void at_once(void))
{
    double plain = HUGE_VAL, hidden = HUGE_VAL, each;
    size_t steps = 0, other, wrong = 0;
    computed = 0;
    for (int round = 0; round < 5; round++) {
        steps = solve(at_once, nothing, &each);
        plain = fmin(plain, each);
        other = solve(start, wait, &each);
        hidden = fmin(hidden, each);
        wrong += steps == 0 || steps != other;
    }
    if (rank == 0)
        printf("cg by %s: %" PRIu32 " ranks, %zu steps; sums take %.2f us of a step, beside a product of %.2f us %.2f: hidden to %.0f %%\n", by, size,
               steps, 1e6 * plain, 1e5 * computed / (double)steps, 1e6 * hidden, 100 * (1 - hidden / plain));
    return wrong > 0 ? "the system is not solved" : NULL;
}

int main(int argc, char **argv)
{
    context = begin(&argc, &argv, (llcl_config_t)LLCL_CONFIG_INIT);
    rank = llcl_rank(context), size = llcl_size(context);
    rows = argument(argc, argv, 1, 256), columns = argument(argc, argv, 2, 256);
    margins = zeroed(size, sizeof *margins);
    llcl_region_t *region, *small;
    LLCL_CHECK(llcl_region_allocate_shared(context, (4 * columns + 2) * sizeof *margin, &region, margins));
    LLCL_CHECK(llcl_region_allocate(context, 4 * sizeof *sums, 0, &small));
    margin = llcl_region_address(region);
    sums = llcl_region_address(small);
    llcl_coll_params_t params = {.send = llcl_region_local(small, 0), .receive = llcl_region_local(small, 2 * sizeof *sums),
        .count = 2, .type = LLCL_TYPE_F64, .op = LLCL_OP_ADD};
    LLCL_CHECK(llcl_team_world(context, &params.team));
    LLCL_CHECK(llcl_allreduce_init(&params, &plan));
    const char *wrong = compare("the library", start_llcl, wait_llcl, at_once_llcl);
#ifdef WITH_MPI
    const char *by_mpi = compare("MPI", start_mpi, wait_mpi, at_once_mpi);
    wrong = wrong != NULL ? wrong : by_mpi;
#endif
    LLCL_CHECK(llcl_coll_free(plan));
    free(margins);
    return end(context, wrong);
}
