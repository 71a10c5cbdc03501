/* The heat equation on a ring of ranks. In every step each rank writes its first and its last value
 * to its neighbours, sleeps until theirs have arrived, and computes. Values of even and odd steps
 * have different places. So a rank that is a step ahead overwrites nothing that its neighbour has
 * not read yet; it cannot be two steps ahead, since each step waits for the neighbour's values.
 * Run: llcl-run -n 4 ./halo */
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 100, STEPS = 1000, LEFT = 0, RIGHT = 1 };

struct halo {
    double value[2][2]; /* by step (even, odd) and side (from the left, from the right) */
    uint64_t came[2];   /* by side: how many values have arrived */
};

static llcl_context_t *context;
static llcl_remote_t *halos;

/* Writes a value into a neighbour's halo; the signal counts it there. */
static void put(uint32_t peer, int side, uint64_t step, double *value)
{
    llcl_write_signal_params_t put = {.peer = peer, .source = llcl_local_address(value), .size = sizeof *value,
        .destination = llcl_at(halos[peer], offsetof(struct halo, value[step % 2][side])), .signal_value = 1,
        .signal = llcl_at(halos[peer], offsetof(struct halo, came[side])), .signal_op = LLCL_SIGNAL_ADD};
    LLCL_CHECK(llcl_write_signal(context, &put));
}

int main(void)
{
    LLCL_CHECK(llcl_init(NULL, &context));
    uint32_t rank = llcl_rank(context), size = llcl_size(context);
    uint32_t left = (rank + size - 1) % size, right = (rank + 1) % size;
    llcl_region_t *region;
    halos = calloc(size, sizeof *halos);
    if (halos == NULL)
        return 1;
    LLCL_CHECK(llcl_region_allocate_shared(context, sizeof(struct halo), &region, halos));
    struct halo *halo = llcl_region_address(region);

    double cells[CELLS + 2] = {0}, next[CELLS + 2] = {0}, mine = 0, all = 0;
    cells[CELLS / 2] = rank == 0 ? 1000.0 : 0.0;
    for (uint64_t step = 0; step < STEPS; step++) {
        put(left, RIGHT, step, &cells[1]);
        put(right, LEFT, step, &cells[CELLS]);
        LLCL_CHECK(llcl_wait_word(context, &halo->came[LEFT], step + 1, -1));
        LLCL_CHECK(llcl_wait_word(context, &halo->came[RIGHT], step + 1, -1));
        cells[0] = halo->value[step % 2][LEFT];
        cells[CELLS + 1] = halo->value[step % 2][RIGHT];
        for (int i = 1; i <= CELLS; i++)
            next[i] = cells[i] + 0.25 * (cells[i - 1] - 2 * cells[i] + cells[i + 1]);
        for (int i = 1; i <= CELLS; i++)
            cells[i] = next[i];
    }

    /* The sum of the heat must not change. */
    for (int i = 1; i <= CELLS; i++)
        mine += cells[i];
    llcl_coll_params_t sum = {.count = 1, .type = LLCL_TYPE_F64, .op = LLCL_OP_ADD,
        .send = llcl_local_address(&mine), .receive = llcl_local_address(&all)};
    LLCL_CHECK(llcl_team_world(context, &sum.team));
    LLCL_CHECK(llcl_allreduce(&sum));
    if (rank == 0)
        printf("%u cells, %.3f degrees in all\n", size * CELLS, all);
    free(halos);
    LLCL_CHECK(llcl_finalize(context));
    return all > 999.999 && all < 1000.001 ? 0 : 1;
}
