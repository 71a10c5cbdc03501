/* A work-stealing task queue: in how many ways can n queens stand on a board? A task is a board
 * whose first rows are occupied. A rank without tasks sends a message to another rank, whose
 * handler replies with up to half of its tasks. Handlers run only where the program polls
 * (LLCL_AM_HANDLERS_POLLED), so the queue needs no lock.
 * Run: llcl-run -n 4 ./tasks [n] */
#include "world.h"

enum { STEAL = 1, MOST = 32, DEPTH = 4 }; /* the handler's id; the most tasks in a reply; tasks with fewer rows than this make new tasks */
enum { QUEENS = 31 }; /* the most: a row of the board is the bits of a uint32_t */

struct task { /* the number of occupied rows; bits of the columns and diagonals that are attacked in the next row */
    uint32_t row, columns, left, right;
};

struct queue {
    struct task task[1 << 16];
    size_t first, end; /* other ranks get the oldest tasks, which are the largest */
};

struct board { /* in a region; ranks use that of rank 0 */
    uint64_t open;      /* tasks that exist and are not done */
    uint64_t solutions;
};

static llcl_context_t *context;
static llcl_remote_t *boards;
static struct queue queue;
static uint32_t n;
static uint64_t stolen;

/* Adds to a word of rank 0; returns its old value. */
static uint64_t add(size_t word, uint64_t value)
{
    uint64_t before;
    llcl_fetch_add_params_t add = {.target = llcl_at(boards[0], word), .operand = value, .result = &before};
    LLCL_CHECK(llcl_fetch_add(context, &add));
    return before;
}

static void give(llcl_am_t *message, void *data)
{
    size_t half = (queue.end - queue.first + 1) / 2;
    if (half > MOST)
        half = MOST;
    (void)data;
    LLCL_CHECK(llcl_am_reply(message, queue.task + queue.first, half * sizeof(struct task)));
    queue.first += half;
}

static uint64_t solve(struct task t)
{
    uint64_t ways = 0;
    if (t.row == n)
        return 1;
    for (uint32_t free = ~(t.columns | t.left | t.right) & ((1u << n) - 1); free != 0; free &= free - 1) {
        uint32_t queen = free & -free;
        ways += solve((struct task){t.row + 1, t.columns | queen, (t.left | queen) << 1, (t.right | queen) >> 1});
    }
    return ways;
}

/* Does a task: near the root it makes new tasks, otherwise it searches to the end. Returns the
 * number of solutions. */
static uint64_t work(struct task t)
{
    uint32_t makes = ~(t.columns | t.left | t.right) & ((1u << n) - 1), made = 0;
    if (t.row >= DEPTH || t.row >= n)
        return solve(t);
    for (uint32_t free = makes; free != 0; free &= free - 1)
        made++;
    add(offsetof(struct board, open), made); /* before a rank can take them; otherwise `open` could become 0 too early */
    for (uint32_t free = makes; free != 0; free &= free - 1) {
        uint32_t queen = free & -free;
        queue.task[queue.end++] = (struct task){t.row + 1, t.columns | queen, (t.left | queen) << 1, (t.right | queen) >> 1};
    }
    return 0;
}

/* Requests tasks from another rank. */
static void steal(uint32_t victim)
{
    struct task loot[MOST];
    size_t bytes = 0;
    llcl_am_params_t ask = {.peer = victim, .id = STEAL, .reply = loot, .reply_capacity = sizeof loot, .reply_size = &bytes};
    LLCL_CHECK(llcl_am(context, &ask)); /* this rank's own handler may run during the wait; the queue is empty */
    queue.first = 0, queue.end = bytes / sizeof *loot;
    memcpy(queue.task, loot, bytes);
    stolen += queue.end;
}

int main(int argc, char **argv)
{
    static const uint64_t known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184};
    llcl_config_t config = LLCL_CONFIG_INIT;
    config.am_handlers = LLCL_AM_HANDLERS_POLLED;
    context = begin(&argc, &argv, config);
    uint32_t rank = llcl_rank(context), size = llcl_size(context), victim = rank;
    n = (uint32_t)argument_up_to(QUEENS, argc, argv, 1, 10);
    boards = zeroed(size, sizeof *boards);
    llcl_region_t *region;
    LLCL_CHECK(llcl_region_allocate_shared(context, sizeof(struct board), &region, boards));
    struct board *board = llcl_region_address(region);
    LLCL_CHECK(llcl_am_register(context, STEAL, give, NULL));
    if (rank == 0) {
        board->open = 1;
        queue.task[queue.end++] = (struct task){0};
    }
    LLCL_CHECK(llcl_barrier(context));

    double start = seconds();
    uint64_t solutions = 0, done = 0, all = 0;
    for (;;) {
        for (; queue.end > queue.first; done++) {
            solutions += work(queue.task[--queue.end]); /* the newest task */
            LLCL_CHECK(llcl_am_poll(context, 8, NULL));
        }
        all += done;
        uint64_t open = add(offsetof(struct board, open), 0 - done) - done;
        done = 0;
        if (open == 0)
            break;
        victim = (victim + 1) % size;
        if (victim != rank)
            steal(victim);
    }
    add(offsetof(struct board, solutions), solutions);
    LLCL_CHECK(llcl_barrier(context));
    double took = seconds() - start;
    uint64_t ways = board->solutions;
    const char *wrong = n > 15 || rank != 0 || ways == known[n] ? NULL : "the number of solutions is wrong";
    printf("tasks: rank %" PRIu32 " of %" PRIu32 " has done %" PRIu64 " tasks, %" PRIu64 " of them stolen\n", rank, size, all, stolen);
    if (rank == 0)
        printf("tasks: %" PRIu32 " queens, %" PRIu64 " solutions, %.1f ms\n", n, ways, 1e3 * took);
    free(boards);
    return end(context, wrong);
}
