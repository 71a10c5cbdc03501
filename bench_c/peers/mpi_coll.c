/* Measures the collectives of an MPI in blocking, non-blocking and persistent forms, by the loop
 * that measures the library's. Prints lines for `coll` and `overlap` (coll_peers.c reads them).
 * Uses nothing of libllcl. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../coll_loop.h"
#include "../coll_ops.h"

#if MPI_VERSION >= 4
#define PERSISTENT 1
#define INIT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define PERSISTENT 1
#define INIT(name) MPIX_##name##_init
#else
#define PERSISTENT 0
#endif

enum { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORMS };
static const char *const form_names[] = {"blocking", "non-blocking", "persistent"};

typedef struct call {
    coll_op_t op;
    int count; /* elements of `type` in the vector or block */
    MPI_Datatype type;
    char *send, *receive;
    MPI_Request request;
} call_t;

/* An error ends the program: MPI's default error handler aborts. */
static void blocking(void *self)
{
    call_t *c = self;
    MPI_Comm all = MPI_COMM_WORLD;
    switch (c->op) {
    case COLL_BARRIER: MPI_Barrier(all); break;
    case COLL_BROADCAST: MPI_Bcast(c->receive, c->count, c->type, 0, all); break;
    case COLL_ALLREDUCE: MPI_Allreduce(c->send, c->receive, c->count, c->type, MPI_SUM, all); break;
    case COLL_REDUCE: MPI_Reduce(c->send, c->receive, c->count, c->type, MPI_SUM, 0, all); break;
    case COLL_GATHER: MPI_Gather(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all); break;
    case COLL_SCATTER: MPI_Scatter(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all); break;
    case COLL_ALLGATHER: MPI_Allgather(c->send, c->count, c->type, c->receive, c->count, c->type, all); break;
    case COLL_ALLTOALL: MPI_Alltoall(c->send, c->count, c->type, c->receive, c->count, c->type, all); break;
    case COLL_REDUCE_SCATTER: MPI_Reduce_scatter_block(c->send, c->receive, c->count, c->type, MPI_SUM, all); break;
    case COLL_EXSCAN: MPI_Exscan(c->send, c->receive, c->count, c->type, MPI_SUM, all); break;
    default: MPI_Scan(c->send, c->receive, c->count, c->type, MPI_SUM, all); break;
    }
}

static void nonblocking(void *self)
{
    call_t *c = self;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request *r = &c->request;
    switch (c->op) {
    case COLL_BARRIER: MPI_Ibarrier(all, r); break;
    case COLL_BROADCAST: MPI_Ibcast(c->receive, c->count, c->type, 0, all, r); break;
    case COLL_ALLREDUCE: MPI_Iallreduce(c->send, c->receive, c->count, c->type, MPI_SUM, all, r); break;
    case COLL_REDUCE: MPI_Ireduce(c->send, c->receive, c->count, c->type, MPI_SUM, 0, all, r); break;
    case COLL_GATHER: MPI_Igather(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all, r); break;
    case COLL_SCATTER: MPI_Iscatter(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all, r); break;
    case COLL_ALLGATHER: MPI_Iallgather(c->send, c->count, c->type, c->receive, c->count, c->type, all, r); break;
    case COLL_ALLTOALL: MPI_Ialltoall(c->send, c->count, c->type, c->receive, c->count, c->type, all, r); break;
    case COLL_REDUCE_SCATTER: MPI_Ireduce_scatter_block(c->send, c->receive, c->count, c->type, MPI_SUM, all, r); break;
    default: MPI_Iscan(c->send, c->receive, c->count, c->type, MPI_SUM, all, r); break;
    }
}

#if PERSISTENT
static void persistent_init(call_t *c)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    MPI_Request *r = &c->request;
    switch (c->op) {
    case COLL_BARRIER: INIT(Barrier)(all, none, r); break;
    case COLL_BROADCAST: INIT(Bcast)(c->receive, c->count, c->type, 0, all, none, r); break;
    case COLL_ALLREDUCE: INIT(Allreduce)(c->send, c->receive, c->count, c->type, MPI_SUM, all, none, r); break;
    case COLL_REDUCE: INIT(Reduce)(c->send, c->receive, c->count, c->type, MPI_SUM, 0, all, none, r); break;
    case COLL_GATHER: INIT(Gather)(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all, none, r); break;
    case COLL_SCATTER: INIT(Scatter)(c->send, c->count, c->type, c->receive, c->count, c->type, 0, all, none, r); break;
    case COLL_ALLGATHER: INIT(Allgather)(c->send, c->count, c->type, c->receive, c->count, c->type, all, none, r); break;
    case COLL_ALLTOALL: INIT(Alltoall)(c->send, c->count, c->type, c->receive, c->count, c->type, all, none, r); break;
    case COLL_REDUCE_SCATTER:
        INIT(Reduce_scatter_block)(c->send, c->receive, c->count, c->type, MPI_SUM, all, none, r);
        break;
    case COLL_EXSCAN: INIT(Exscan)(c->send, c->receive, c->count, c->type, MPI_SUM, all, none, r); break;
    default: INIT(Scan)(c->send, c->receive, c->count, c->type, MPI_SUM, all, none, r); break;
    }
}

static void persistent_start(void *self) { MPI_Start(&((call_t *)self)->request); }
#endif

static void wait_for(void *self) { MPI_Wait(&((call_t *)self)->request, MPI_STATUS_IGNORE); }

/* ---- the world ---- */

static void gather(void *self, const void *mine, size_t size, void *all)
{
    (void)self;
    MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void *memory_of(size_t bytes)
{
    void *memory;
    bytes = bytes > 0 ? bytes : 64;
    if (posix_memalign(&memory, 4096, bytes) != 0)
        bench_die("mpi_coll: no memory for %zu bytes", bytes);
    memset(memory, 1, bytes);
    return memory;
}

/* ---- measurements ---- */

typedef struct options {
    double budget_ms;
    int set, quick, overlap;
    size_t largest; /* the sizes up to this one */
    int terse; /* 8 B and 1 MiB only: for an MPI that needs milliseconds for a barrier */
} options_t;

static loop_world_t world = {.gather = gather};

/* Makes a form. Returns the time of its init in ns, 0 for a form without init, NAN if there is no
 * such form. */
static double make(call_t *c, int form, loop_form_t *loop)
{
    *loop = (loop_form_t){.wait = blocking, .self = c};
    if (form == FORM_BLOCKING)
        return 0;
    loop->wait = wait_for;
    loop->start = nonblocking;
    if (form == FORM_NONBLOCKING)
        return 0;
#if PERSISTENT
    loop->start = persistent_start;
    loop_meet(&world);
    uint64_t before = bench_ticks();
    persistent_init(c);
    return (double)(bench_ticks() - before) / bench_ticks_per_ns();
#else
    return NAN;
#endif
}

static void unmake(call_t *c, int form)
{
    if (form == FORM_PERSISTENT)
        MPI_Request_free(&c->request);
}

/* Runs one more round with other data; returns 1 if the result is right. (The persistent gather,
 * scatter and allgather of MPICH 4.0 send the data of the first round again.) */
static int check(const call_t *c, const loop_form_t *loop, size_t size, int form)
{
    coll_fill(c->op, size, world.rank, world.size, c->send, c->receive);
    loop_once(&world, loop);
    size_t wrong = coll_check(c->op, size, world.rank, world.size, c->receive);
    if (wrong > 0)
        fprintf(stderr, "mpi_coll: %s %s of %zu bytes: byte %zu at rank %u is wrong\n", form_names[form], coll_op_name(c->op),
                size, wrong - 1, world.rank);
    int mine = wrong == 0, all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (world.rank == 0 && !all)
        printf("mpi-wrong,%s,%zu,%s\n", coll_op_name(c->op), size, form_names[form]);
    return all;
}

static double most(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* mpi,OPERATION,SIZE,FORM,init us,start ns,round alone us,round in a loop us */
static void measure(const options_t *options, call_t *c, size_t size, int form)
{
    loop_form_t loop;
    double init = make(c, form, &loop);
    if (isnan(init))
        return;
    init = most(init);
    loop_result_t alone = loop_run(&world, &loop, LOOP_ALONE, 0, options->budget_ms);
    loop_result_t rounds = loop_run(&world, &loop, LOOP_ROUNDS, 0, options->budget_ms);
    int right = check(c, &loop, size, form);
    unmake(c, form);
    if (world.rank == 0 && right)
        printf("mpi,%s,%zu,%s,%.3f,%.1f,%.4f,%.4f\n", coll_op_name(c->op), size, form_names[form], init / 1000, alone.start,
               loop_total(&world, &alone) / 1000, loop_total(&world, &rounds) / 1000);
    fflush(stdout);
}

/* Prints mpi-overlap,OPERATION,SIZE,FORM,pure us,total us,percent, with both cores computing. Two
 * ranks of an MPI on one core would wait for each other's time slices, and an MPI has no thread
 * that could use the other core. */
static void measure_overlap(const options_t *options, call_t *c, size_t size, int form)
{
    loop_form_t loop;
    if (isnan(make(c, form, &loop)))
        return;
    int right = check(c, &loop, size, form);
    loop_overlap_t result = loop_overlap(&world, &loop, LOOP_ALL_BUSY, options->budget_ms);
    if (world.rank == 0 && right)
        printf("mpi-overlap,%s,%zu,%s,%.3f,%.3f,%.2f\n", coll_op_name(c->op), size, form_names[form], result.pure / 1000,
               result.total / 1000, result.percent);
    unmake(c, form);
    fflush(stdout);
}

static void operation(const options_t *options, coll_op_t op)
{
    size_t sizes[COLL_MOST_SIZES];
    int count = options->overlap ? coll_overlap_sizes(options->quick, sizes) : coll_sizes(op, world.size, options->quick, sizes);
    for (int i = 0; i < count; i++) {
        size_t size = sizes[i];
        int main_size = size == 0 || size == 8 || size == 1048576;
        if ((options->terse && !main_size) || (options->set == 1 && size > 1048576) || size > options->largest)
            continue;
        call_t c = {.op = op, .type = coll_op_combines(op) ? MPI_DOUBLE : MPI_BYTE};
        c.count = (int)(coll_op_combines(op) ? size / sizeof(double) : size);
        c.send = memory_of(coll_send_bytes(op, size, world.size));
        c.receive = memory_of(coll_receive_bytes(op, size, world.size));
        coll_fill(op, size, world.rank, world.size, c.send, c.receive);
        for (int form = options->overlap ? FORM_NONBLOCKING : FORM_BLOCKING; form < FORMS; form++) {
            if (options->overlap)
                measure_overlap(options, &c, size, form);
            else
                measure(options, &c, size, form);
        }
        free(c.send);
        free(c.receive);
    }
}

static options_t parse(int argc, char **argv)
{
    options_t options = {.budget_ms = 20, .largest = SIZE_MAX};
    int letter;
    while ((letter = getopt(argc, argv, "s:b:l:qot")) != -1) {
        switch (letter) {
        case 's': options.set = atoi(optarg); break;
        case 'b': options.budget_ms = strtod(optarg, NULL); break;
        case 'l': options.largest = strtoul(optarg, NULL, 10); break;
        case 'q': options.quick = 1; break;
        case 'o': options.overlap = 1; break;
        case 't': options.terse = 1; break;
        default: bench_die("usage: mpi_coll [-s 0|1] [-b MILLISECONDS] [-l BYTES] [-q] [-t] [-o]");
        }
    }
    bench_cores(); /* records the processors before a thread is pinned */
    return options;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    options_t options = parse(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world.rank = (uint32_t)rank;
    world.size = (uint32_t)size;
    if (size > LOOP_MOST_RANKS)
        bench_die("mpi_coll: %d ranks, expected at most %d", size, LOOP_MOST_RANKS);
    loop_place(world.rank, world.size);
    world.shared = loop_common(&world, sizeof *world.shared);
    for (int op = 0; op < COLL_OPS; op++)
        if (options.overlap ? coll_op_overlaps((coll_op_t)op) : (op < COLL_MAIN_SET) == (options.set == 0))
            operation(&options, (coll_op_t)op);
    MPI_Finalize();
    return 0;
}
