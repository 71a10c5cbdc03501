/* The cost of short calls of the interface: a put and a blocking write of 8 bytes, llcl_barrier,
 * boxes with strides and lists. The limits are what a program can do by itself: an inlined store
 * through llcl_remote_pointer, a plan of its own for the barrier, a loop over mapped memory. For
 * memory that only its owner can access (LLCL_CMA=off) the limit is a write for each piece. */
#include <string.h>

#include "llcl_inline.h"
#include "world.h"

#define CALLS 200000
#define BARRIERS 1000
#define TURNS 21
#define PIECES 64
#define SOME 256
#define MANY 4096
#define BOXES 2000
#define STRIDE 64

static const char *about = "Puts and blocking writes of 8 bytes, the barrier by its name, boxes with strides, lists; each call's mean.";

static double since(uint64_t begin, double calls)
{
    return (double)(bench_ticks() - begin) / bench_ticks_per_ns() / calls;
}

static double stores(const bench_world_t *world)
{
    uint64_t *word = (uint64_t *)(void *)world->mapped_pointer, *source = (uint64_t *)(void *)world->source_memory;
    uint64_t begin = bench_ticks();
    for (int i = 0; i < CALLS; i++) {
        __atomic_store_n(word, __atomic_load_n(source, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
        __asm__ volatile("" ::: "memory");
    }
    return since(begin, CALLS);
}

/* Writes the word through a window of llcl_inline.h. */
static double puts_inline(const bench_world_t *world)
{
    llcl_window_t window = llcl_window(world->context, world->peer, world->remote[BENCH_MAPPED], MANY * STRIDE);
    uint64_t *source = (uint64_t *)(void *)world->source_memory;
    llcl_status_t status = LLCL_OK;
    uint64_t begin = bench_ticks();
    for (int i = 0; i < CALLS; i++) {
        status |= llcl_window_put64(window, 0, __atomic_load_n(source, __ATOMIC_RELAXED));
        __asm__ volatile("" ::: "memory");
    }
    bench_check(status, "llcl_window_put64");
    return since(begin, CALLS);
}

static double writes(const bench_world_t *world, int blocking)
{
    bench_request_t request = world_request(world, BENCH_WRITE, BENCH_MAPPED, 0, 8, llcl_no_completion(), 0);
    uint64_t begin = bench_ticks();
    for (int i = 0; i < CALLS; i++) {
        if (blocking)
            bench_check(llcl_write(world->context, &request.as.write), "llcl_write");
        else
            bench_post(world->context, BENCH_WRITE, &request);
    }
    return since(begin, CALLS);
}

/* Collective. */
static double barriers(const bench_world_t *world, llcl_coll_t *plan)
{
    bench_check(llcl_barrier(world->context), "llcl_barrier");
    uint64_t begin = bench_ticks();
    for (int i = 0; i < BARRIERS; i++) {
        if (plan == NULL) {
            bench_check(llcl_barrier(world->context), "llcl_barrier");
        } else {
            bench_check(llcl_coll_start(plan), "llcl_coll_start");
            bench_check(llcl_coll_wait(plan, -1), "llcl_coll_wait");
        }
    }
    return since(begin, BARRIERS);
}

/* Measures both barriers in alternate turns, so that other programs disturb both alike. A repeat
 * has the medians of its turns. */
static void add_barriers(const bench_world_t *world, llcl_coll_t *plan, bench_series_t *series)
{
    double planned[TURNS], named[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        planned[turn] = barriers(world, plan);
        named[turn] = barriers(world, NULL);
    }
    bench_add(series, bench_percentile(planned, TURNS, 50), bench_percentile(named, TURNS, 50), NAN);
}

static llcl_strided_params_t box(const bench_world_t *world, bench_memory_t memory, size_t size, size_t pieces)
{
    llcl_strided_params_t params = LLCL_STRIDED_PARAMS_INIT;
    params.peer = world->peer;
    params.local = llcl_local_address(world->source_memory);
    params.remote = world->remote[memory];
    params.size = size;
    params.dimensions = 1;
    params.extents[0] = pieces;
    params.local_strides[0] = params.remote_strides[0] = STRIDE;
    return params;
}

/* The number of calls: so many that the first ones, which are slower, do not change the mean. */
static int calls_of(size_t pieces)
{
    return pieces == MANY ? BOXES / 4 : BOXES;
}

static double boxes(const bench_world_t *world, bench_memory_t memory, size_t size, size_t pieces)
{
    llcl_strided_params_t params = box(world, memory, size, pieces);
    uint64_t begin = bench_ticks();
    int count = calls_of(pieces);
    for (int i = 0; i < count; i++)
        bench_check(llcl_write_strided(world->context, &params), "llcl_write_strided");
    return since(begin, count);
}

/* The limit of a box: the loop of a program that has the pointer to the mapped memory. */
static double loops(const bench_world_t *world, size_t size, size_t pieces)
{
    uint64_t begin = bench_ticks();
    int count = calls_of(pieces);
    for (int i = 0; i < count; i++) {
        const char *from = world->source_memory;
        char *to = world->mapped_pointer;
        for (size_t piece = 0; piece < pieces; piece++, from += STRIDE, to += STRIDE) {
            if (size == 8)
                memcpy(to, from, 8);
            else
                memcpy(to, from, size);
        }
        __asm__ volatile("" ::: "memory");
    }
    return since(begin, count);
}

/* PIECES pieces as lists of addresses and sizes, for llcl_writev and for the loop. */
typedef struct lists {
    llcl_local_span_t locals[PIECES];
    llcl_remote_span_t remotes[PIECES];
    struct { char *from, *to; size_t size; } by_hand[PIECES];
} lists_t;

static void list_pieces(const bench_world_t *world, size_t size, lists_t *lists)
{
    for (size_t piece = 0; piece < PIECES; piece++) {
        size_t at = piece * STRIDE;
        lists->locals[piece].place = llcl_local_address(world->source_memory + at);
        lists->remotes[piece].place = llcl_at(world->remote[BENCH_MAPPED], at);
        lists->by_hand[piece].from = world->source_memory + at;
        lists->by_hand[piece].to = world->mapped_pointer + at;
        lists->locals[piece].size = lists->remotes[piece].size = lists->by_hand[piece].size = size;
    }
}

static double listed(const bench_world_t *world, lists_t *lists)
{
    llcl_vector_params_t params = LLCL_VECTOR_PARAMS_INIT;
    params.peer = world->peer;
    params.locals = lists->locals;
    params.remotes = lists->remotes;
    params.local_count = params.remote_count = PIECES;
    uint64_t begin = bench_ticks();
    for (int i = 0; i < BOXES; i++)
        bench_check(llcl_writev(world->context, &params), "llcl_writev");
    return since(begin, BOXES);
}

static double listed_by_hand(const lists_t *lists)
{
    uint64_t begin = bench_ticks();
    for (int i = 0; i < BOXES; i++) {
        for (size_t piece = 0; piece < PIECES; piece++)
            memcpy(lists->by_hand[piece].to, lists->by_hand[piece].from, lists->by_hand[piece].size);
        __asm__ volatile("" ::: "memory");
    }
    return since(begin, BOXES);
}

static double one_by_one(const bench_world_t *world, size_t size)
{
    uint64_t begin = bench_ticks();
    for (int i = 0; i < BOXES / 10; i++) {
        for (size_t piece = 0; piece < PIECES; piece++) {
            bench_request_t request = world_request(world, BENCH_WRITE, BENCH_REGISTERED, piece * STRIDE, size, llcl_no_completion(), 0);
            bench_check(llcl_write_async(world->context, &request.as.write), "llcl_write_async");
        }
        bench_check(llcl_flush(world->context, world->peer), "llcl_flush");
    }
    return since(begin, BOXES / 10);
}

/* New contents for the pieces, which the next calls must bring to the peer. */
static void renew(const bench_world_t *world)
{
    static int turn = 1;
    memset(world->source_memory, ++turn, MANY * STRIDE);
}

static void verify(const bench_world_t *world, const char *what, size_t size, size_t pieces)
{
    bench_check(llcl_flush(world->context, world->peer), "llcl_flush");
    for (size_t piece = 0; piece < pieces; piece++)
        if (memcmp(world->mapped_pointer + piece * STRIDE, world->source_memory + piece * STRIDE, size) != 0)
            bench_die("single: WRONG DATA by %s, piece %zu", what, piece);
}

/* Not over a wire, where `mapped_pointer` is no memory of the peer. `lists`: of 48 bytes. */
static void verify_all(const bench_world_t *world, lists_t *lists)
{
    if (world->behind_wire)
        return;
    renew(world);
    puts_inline(world);
    verify(world, "llcl_window_put64", 8, 1);
    for (int blocking = 0; blocking < 2; blocking++) {
        renew(world);
        writes(world, blocking);
        verify(world, blocking ? "llcl_write" : "llcl_try_write_async", 8, 1);
    }
    for (size_t pieces = PIECES; pieces <= MANY; pieces *= 8) {
        renew(world);
        boxes(world, BENCH_MAPPED, 48, pieces);
        verify(world, "llcl_write_strided", 48, pieces);
    }
    renew(world);
    listed(world, lists);
    verify(world, "llcl_writev", 48, PIECES);
}

static void emit(const bench_world_t *world, const char *what, const char *limit, const char *target, size_t size, uint64_t count,
                 const bench_series_t *series)
{
    bench_record_t record = {.what = what, .unit = "ns", .limit_name = limit, .target = target, .ranks = (int)world->size,
                             .threads = 1, .size = size, .count = count, .series = *series};
    bench_emit(&record);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    bench_series_t put = {0}, window = {0}, blocking = {0}, barrier = {0}, small = {0}, large = {0}, many = {0}, wide = {0}, some = {0}, some_large = {0}, message = {0};
    bench_series_t list_small = {0}, list_large = {0};
    static lists_t lists;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    llcl_coll_t *plan;
    world_open(&world, &options, MANY * STRIDE);
    bench_check(llcl_team_world(world.context, &params.team), "llcl_team_world");
    bench_check(llcl_barrier_init(&params, &plan), "llcl_barrier_init");
    for (int i = 0; i < options.repeats; i++)
        add_barriers(&world, plan, &barrier);
    bench_check(llcl_coll_free(plan), "llcl_coll_free");
    if (options.show) {
        for (int i = 0; i < options.repeats; i++) {
            bench_add(&window, stores(&world), puts_inline(&world), NAN);
            bench_add(&put, stores(&world), writes(&world, 0), NAN);
            bench_add(&blocking, stores(&world), writes(&world, 1), NAN);
            bench_add(&small, loops(&world, 8, PIECES), boxes(&world, BENCH_MAPPED, 8, PIECES), NAN);
            bench_add(&large, loops(&world, 48, PIECES), boxes(&world, BENCH_MAPPED, 48, PIECES), NAN);
            bench_add(&some, loops(&world, 8, SOME), boxes(&world, BENCH_MAPPED, 8, SOME), NAN);
            bench_add(&some_large, loops(&world, 48, SOME), boxes(&world, BENCH_MAPPED, 48, SOME), NAN);
            bench_add(&many, loops(&world, 8, MANY), boxes(&world, BENCH_MAPPED, 8, MANY), NAN);
            bench_add(&wide, loops(&world, 48, MANY), boxes(&world, BENCH_MAPPED, 48, MANY), NAN);
            list_pieces(&world, 8, &lists);
            bench_add(&list_small, listed_by_hand(&lists), listed(&world, &lists), NAN);
            list_pieces(&world, 48, &lists);
            bench_add(&list_large, listed_by_hand(&lists), listed(&world, &lists), NAN);
            bench_add(&message, one_by_one(&world, 8), boxes(&world, BENCH_REGISTERED, 8, PIECES), NAN);
        }
        verify_all(&world, &lists);
        bench_begin(&options, about);
        emit(&world, "put; llcl_inline.h", "inlined store", "ratio<=1.3", 8, CALLS, &window);
        emit(&world, "put; a call", "inlined store", NULL, 8, CALLS, &put);
        emit(&world, "blocking write", "inlined store", "value<=10", 8, CALLS, &blocking);
        emit(&world, "llcl_barrier", "a plan's barrier", "ratio<=1.2", 0, BARRIERS, &barrier);
        emit(&world, "box of 64 pieces", "loop over mapped memory", "ratio<=1.11", 8, BOXES, &small);
        emit(&world, "box of 64 pieces", "loop over mapped memory", "ratio<=1.11", 48, BOXES, &large);
        emit(&world, "box of 256 pieces", "loop over mapped memory", "ratio<=1.11", 8, BOXES, &some);
        emit(&world, "box of 256 pieces", "loop over mapped memory", "ratio<=1.11", 48, BOXES, &some_large);
        emit(&world, "box of 4096 pieces", "loop over mapped memory", "ratio<=1.11", 8, (uint64_t)calls_of(MANY), &many);
        emit(&world, "box of 4096 pieces", "loop over mapped memory", "ratio<=1.11", 48, (uint64_t)calls_of(MANY), &wide);
        emit(&world, "list of 64 spans", "loop over mapped memory", "ratio<=1.11", 8, BOXES, &list_small);
        emit(&world, "list of 64 spans", "loop over mapped memory", "ratio<=1.11", 48, BOXES, &list_large);
        emit(&world, "box of 64 pieces; registered", "64 writes and a flush", NULL, 8, BOXES, &message);
        bench_end();
    }
    world_close(&world);
    return 0;
}
