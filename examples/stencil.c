/* The usual 2-D stencil in blocks of n by n cells: in each step a rank exchanges its outer cells
 * with up to four neighbours, and computes. exchange_mpi() uses MPI_Isend and MPI_Irecv, and
 * exchange_llcl() llcl_write_signal_async. The result must equal that of the whole grid bit by bit.
 * Run: llcl-run -n 4 ./stencil [n] [steps]; both ways: mpirun -n 4 ./stencil_mpi [n] [steps] */
#include "world.h"
#include <math.h>

enum { UP, DOWN, LEFT, RIGHT }; /* side ^ 1 is the opposite side */

static llcl_context_t *context;
static size_t n, cells, down, across, my_down, my_across; /* down, across: ranks in a column, in a row; my_*: this rank's place */
static int peers[4];                                      /* -1: the grid's edge */
static double *mine;          /* two grids with a margin of one cell; received columns; columns to send; counters */
static llcl_remote_t *blocks; /* the addresses of `mine` of all ranks */
static uint64_t exchanges[2]; /* the number of calls of exchange_llcl() for each grid */

static double *cell(int now, size_t i, size_t j) { return mine + (size_t)now * cells + i * (n + 2) + j; }
static double *column(int now, int side, int goes) { return mine + 2 * cells + (size_t)(goes * 4 + now * 2 + side - LEFT) * n; }
static uint64_t *counter(int now, int side) { return (uint64_t *)(mine + 2 * cells + 8 * n) + 4 * now + side; }
static double *outgoing(int now, int side) { return side == UP ? cell(now, 1, 1) : side == DOWN ? cell(now, n, 1) : column(now, side, 1); }
static double *incoming(int now, int side) { return side == UP ? cell(now, 0, 1) : side == DOWN ? cell(now, n + 1, 1) : column(now, side, 0); }

#ifdef WITH_MPI
static void exchange_mpi(int now)
{
    MPI_Request all[8];
    MPI_Status ends[8];
    for (int side = UP; side <= RIGHT; side++)
        MPI_Irecv(incoming(now, side), (int)n, MPI_DOUBLE, peers[side] < 0 ? MPI_PROC_NULL : peers[side], side ^ 1, MPI_COMM_WORLD, &all[side]);
    for (int side = UP; side <= RIGHT; side++)
        MPI_Isend(outgoing(now, side), (int)n, MPI_DOUBLE, peers[side] < 0 ? MPI_PROC_NULL : peers[side], side, MPI_COMM_WORLD, &all[4 + side]);
    MPI_Waitall(8, all, ends);
}
#endif

/* A signal counts each write at the neighbour. Even and odd steps have their cells and counters. A
 * rank overwrites cells two steps later: the neighbour's next signal shows that it read them. */
static void exchange_llcl(int now)
{
    uint64_t count = exchanges[now] += 1;
    for (int side = UP; side <= RIGHT; side++) {
        if (peers[side] < 0)
            continue;
        llcl_remote_t there = blocks[peers[side]];
        llcl_write_signal_params_t put = {.peer = (uint32_t)peers[side], .size = n * sizeof(double),
            .source = llcl_local_address(outgoing(now, side)),
            .destination = llcl_at(there, (uint64_t)((char *)incoming(now, side ^ 1) - (char *)mine)),
            .signal = llcl_at(there, (uint64_t)((char *)counter(now, side ^ 1) - (char *)mine)),
            .signal_op = LLCL_SIGNAL_ADD, .signal_value = 1};
        LLCL_CHECK(llcl_write_signal_async(context, &put));
    }
    for (int side = UP; side <= RIGHT; side++)
        if (peers[side] >= 0)
            LLCL_CHECK(llcl_wait_word_from(context, counter(now, side), count, -1, (uint32_t)peers[side]));
}

/* Exchanges the outer cells by `way`; packs columns, which are not contiguous. Returns seconds. */
static double exchange(void way(int), int now)
{
    double start = seconds();
    for (int side = LEFT; side <= RIGHT; side++)
        for (size_t i = 0; i < n && peers[side] >= 0; i++)
            column(now, side, 1)[i] = *cell(now, i + 1, side == LEFT ? 1 : n);
    way(now);
    for (int side = LEFT; side <= RIGHT; side++)
        for (size_t i = 0; i < n && peers[side] >= 0; i++)
            *cell(now, i + 1, side == LEFT ? 0 : n + 1) = column(now, side, 0)[i];
    return seconds() - start;
}

static void sweep(const double *from, double *to, size_t rows, size_t columns)
{
    size_t w = columns + 2;
    for (size_t i = 1; i <= rows; i++)
        for (size_t j = 1; j <= columns; j++)
            to[i * w + j] = 0.2 * (from[i * w + j] + from[(i - 1) * w + j] + from[(i + 1) * w + j] + from[i * w + j - 1] + from[i * w + j + 1]);
}

static double initial(size_t i, size_t j) { return (double)((i * 7919 + j * 104729) % 1000) / 7; }

/* Returns the mean seconds of an exchange, since single ones vary if ranks share a core. */
static double run(void way(int), size_t steps)
{
    double took = 0;
    memset(mine, 0, 2 * cells * sizeof *mine);
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= n; j++)
            *cell(0, i, j) = initial(my_down * n + i, my_across * n + j);
    LLCL_CHECK(llcl_barrier(context)); /* no rank writes into cells that their owner is still setting */
    for (size_t step = 0; step < steps; step++) {
        took += exchange(way, step % 2);
        sweep(cell(step % 2, 0, 0), cell((step + 1) % 2, 0, 0), n, n);
    }
    LLCL_CHECK(llcl_flush_all(context)); /* from now on the cells of the last step may be set again */
    return took / (double)steps;
}

/* Whether this rank's cells are bit by bit those of a computation by one rank alone. */
static int right_bits(double *whole[2], size_t steps)
{
    for (size_t i = 1; i <= n; i++)
        if (memcmp(cell(steps % 2, i, 1), whole[steps % 2] + (my_down * n + i) * (across * n + 2) + my_across * n + 1, n * sizeof(double)) != 0)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    context = begin(&argc, &argv, (llcl_config_t)LLCL_CONFIG_INIT);
    size_t steps = argument(argc, argv, 2, 100), rank = llcl_rank(context), size = llcl_size(context);
    n = argument(argc, argv, 1, 64);
    cells = (n + 2) * (n + 2);
    for (across = 1, down = size; across < down; across++)
        if (size % (across + 1) == 0 && size / (across + 1) >= across + 1)
            down = size / (across + 1);
    across = size / down;
    my_down = rank / across, my_across = rank % across;
    peers[UP] = my_down > 0 ? (int)(rank - across) : -1, peers[DOWN] = my_down + 1 < down ? (int)(rank + across) : -1;
    peers[LEFT] = my_across > 0 ? (int)rank - 1 : -1, peers[RIGHT] = my_across + 1 < across ? (int)rank + 1 : -1;

    llcl_region_t *region;
    double *whole[2];
    size_t all = (down * n + 2) * (across * n + 2);
    whole[0] = zeroed(all, sizeof(double)), whole[1] = zeroed(all, sizeof(double)), blocks = zeroed(size, sizeof *blocks);
    LLCL_CHECK(llcl_region_allocate_shared(context, (2 * cells + 8 * n + 8) * sizeof(double), &region, blocks));
    mine = llcl_region_address(region);
    for (size_t i = 1; i <= down * n; i++)
        for (size_t j = 1; j <= across * n; j++)
            whole[0][i * (across * n + 2) + j] = initial(i, j);
    for (size_t step = 0; step < steps; step++)
        sweep(whole[step % 2], whole[(step + 1) % 2], down * n, across * n);

    const char *wrong = NULL;
    double ours = HUGE_VAL, theirs = HUGE_VAL; /* the fastest of five rounds */
    for (int round = 0; round < 5; round++) {
        ours = fmin(ours, run(exchange_llcl, steps));
        wrong = right_bits(whole, steps) ? wrong : "wrong by the library";
#ifdef WITH_MPI
        theirs = fmin(theirs, run(exchange_mpi, steps));
        wrong = right_bits(whole, steps) ? wrong : "wrong by MPI";
#endif
    }
    if (rank == 0)
        printf("stencil: %zu x %zu ranks of %zu x %zu cells: an exchange takes %.2f us by the library", down, across, n, n, 1e6 * ours);
    if (rank == 0)
        theirs < HUGE_VAL ? printf(", %.2f us by MPI, ratio %.2f\n", 1e6 * theirs, ours / theirs) : printf("\n");
    free(whole[0]), free(whole[1]), free(blocks);
    return end(context, wrong);
}
