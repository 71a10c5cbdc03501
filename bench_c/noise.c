/* Threads of rank 1 sleep in llcl_wait_word. Measures what they cost rank 0: the time of a write to
 * other words of rank 1, and the interrupts of a core that computes. The limits are from the same
 * run: a plain function that does the work of a write, and the interrupts without any sleeper. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MOST 17
#define FIRST_WORD 1024 /* index of the first word on which a thread sleeps. The writer's words lie two pages before; their
                           first one shares a bit of the library's marks with the first sleeper: the
                           worst case. */
#define WRITES 200000

static const char *about =
    "Writes of 8 and 64 bytes, and function-call interrupts a second on a computing core, beside sleeping threads of rank 1.";
static const int sleepers[] = {0, 1, 8, 16, 17};
static llcl_context_t *context;

static void *sleep_on(void *word)
{
    bench_check(llcl_wait_word(context, word, 2, -1), "llcl_wait_word");
    return NULL;
}

/* The number of function-call interrupts of a core, by which other cores make it execute a fence.
 * NAN: /proc/interrupts has no such line. */
static double interrupts(int core)
{
    FILE *file = fopen("/proc/interrupts", "r");
    char line[16384];
    double count = NAN;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = strstr(line, "CAL:");
        if (at == NULL)
            continue;
        at += 4;
        for (int i = 0; i <= core; i++)
            count = (double)strtoull(at, &at, 10);
    }
    if (file != NULL)
        fclose(file);
    return count;
}

static double compute(double seconds)
{
    int core = sched_getcpu();
    double before = interrupts(core);
    uint64_t begin = bench_now_ns();
    while ((double)(bench_now_ns() - begin) < seconds * 1e9)
        bench_pause();
    return (interrupts(core) - before) / seconds;
}

static double write_ns(const bench_world_t *world, size_t size)
{
    bench_request_t request = world_request(world, BENCH_WRITE, BENCH_MAPPED, 0, size, llcl_no_completion(), 0);
    uint64_t begin = bench_ticks();
    for (int i = 0; i < WRITES; i++)
        bench_post(world->context, BENCH_WRITE, &request);
    return (double)(bench_ticks() - begin) / bench_ticks_per_ns() / WRITES;
}

static void fence(const bench_world_t *world)
{
    bench_check(llcl_allgather_bytes(world->context, NULL, 0, NULL), "llcl_allgather_bytes");
}

static void measure(const bench_world_t *world, const bench_options_t *options, int count, double *quiet)
{
    char small[80], large[80], noise[80];
    snprintf(small, sizeof small, "write beside %d sleepers", count);
    snprintf(large, sizeof large, "write beside %d sleepers", count);
    snprintf(noise, sizeof noise, "function-call interrupts of a computing core; %d sleepers", count);
    bench_record_t words = {.what = small, .unit = "ns", .limit_name = "plain function", .ranks = 2, .threads = 1, .size = 8,
                            .count = WRITES, .target = world->execution == LLCL_EXECUTION_OFFLOAD ? NULL : "ratio<=3"};
    bench_record_t lines = {.what = large, .unit = "ns", .limit_name = "plain function", .ranks = 2, .threads = 1, .size = 64,
                            .count = WRITES};
    bench_record_t calls = {.what = noise, .unit = "/s", .limit_name = count ? "without sleepers" : NULL, .ranks = 2,
                            .threads = 1, .count = 1, .target = count ? "value<=10" : NULL};
    for (int i = 0; i < options->repeats; i++) {
        double limit = limits_plain(world->limits, 'w', WRITES);
        bench_add(&words.series, limit, write_ns(world, 8), NAN);
        bench_add(&lines.series, limit, write_ns(world, 64), NAN);
        double now = compute(options->quick ? 0.1 : 0.5);
        bench_add(&calls.series, count ? *quiet : NAN, now, NAN);
    }
    world_verify(world, BENCH_WRITE, BENCH_MAPPED, 64, 0);
    if (count == 0)
        *quiet = bench_median(&calls.series);
    bench_emit(&words);
    bench_emit(&lines);
    bench_emit(&calls);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    pthread_t threads[MOST];
    int begun = 0;
    double quiet = 0;
    world_open(&world, &options, 16384);
    context = world.context;
    if (world.size != 2)
        bench_die("noise needs 2 ranks");
    if (options.show)
        bench_begin(&options, about);
    else if (options.pin)
        bench_pin(1);
    for (size_t i = 0; i < sizeof sleepers / sizeof sleepers[0]; i++) {
        uint64_t *words = llcl_region_address(world.mapped);
        for (; !options.show && begun < sleepers[i]; begun++) {
            words[FIRST_WORD + begun] = 1;
            if (pthread_create(&threads[begun], NULL, sleep_on, &words[FIRST_WORD + begun]) != 0)
                bench_die("pthread_create");
        }
        fence(&world);
        if (options.show) {
            bench_sleep_us(1200000); /* sleepers still wake up in their first second */
            measure(&world, &options, sleepers[i], &quiet);
        }
        fence(&world);
    }
    if (options.show) {
        bench_note("the target of 10 interrupts a second allows for those of the system and of the library's threads");
        bench_end();
    }
    for (int i = 0; options.show && i < MOST; i++) {
        llcl_write_value_params_t end = {.peer = 1, .destination = world.remote[BENCH_MAPPED], .value = 2, .size = 8};
        end.destination.offset += 8 * (uint64_t)(FIRST_WORD + i);
        bench_check(llcl_write_value(context, &end), "llcl_write_value");
    }
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
    fence(&world);
    world_close(&world);
    return 0;
}
