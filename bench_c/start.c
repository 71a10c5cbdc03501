/* The time of a job of n ranks, from its launcher's start to its end. The curve over different
 * numbers of ranks is the result. The program `memory` measures the memory that a peer costs. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *about = "Start, first collectives and end of a job.";

/* Milliseconds since the launcher's start, in steps of 10 ms (/proc/PID/stat). */
static double since_launch(void)
{
    char path[64], text[1024], *field;
    struct timespec now;
    FILE *file;
    int at;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
    file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        bench_die("start: cannot read %s", path);
    fclose(file);
    field = strrchr(text, ')'); /* the end of field 2; the start time is field 22 */
    for (at = 2; field != NULL && at < 22; at++)
        field = strchr(field + 1, ' ');
    if (field == NULL)
        bench_die("start: %s has no start time", path);
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 - strtod(field, NULL) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

static void show(uint32_t size, const char *what, const char *unit, double value)
{
    bench_record_t record = {.what = what, .unit = unit, .ranks = (int)size, .threads = 1};
    bench_add(&record.series, NAN, value, NAN);
    bench_emit(&record);
}

/* Milliseconds since `*from`; sets `*from` to the present time. */
static double lap(uint64_t *from)
{
    uint64_t now = bench_now_ns();
    double ms = (double)(now - *from) / 1e6;
    *from = now;
    return ms;
}

/* Rank 0 writes a word to every rank, while the others sleep. */
static void contact(llcl_context_t *context, const llcl_remote_t *words)
{
    uint32_t size = llcl_size(context), peer;
    uint64_t clock = bench_now_ns();
    for (peer = 1; peer < size; peer++) {
        llcl_write_value_params_t value = {.peer = peer, .destination = words[peer], .value = 1, .size = 8};
        bench_check(llcl_write_value(context, &value), "llcl_write_value");
    }
    show(size, "a word to every rank by one", "ms", lap(&clock));
}

static void collectives(llcl_context_t *context, llcl_region_t *region, int shows)
{
    uint32_t size = llcl_size(context);
    uint64_t clock = bench_now_ns();
    llcl_team_t *team;
    double world, first, second, sum;
    bench_check(llcl_team_world(context, &team), "llcl_team_world");
    world = lap(&clock);
    bench_check(llcl_team_barrier(team), "llcl_team_barrier");
    first = lap(&clock);
    bench_check(llcl_team_barrier(team), "llcl_team_barrier");
    second = lap(&clock);
    llcl_coll_params_t params = {.team = team, .count = 1, .type = LLCL_TYPE_U64, .op = LLCL_OP_ADD};
    params.send = llcl_region_local(region, 8);
    params.receive = llcl_region_local(region, 16);
    uint64_t *word = llcl_region_address(region);
    word[1] = 1;
    bench_check(llcl_allreduce(&params), "llcl_allreduce");
    sum = lap(&clock);
    if (word[2] != size)
        bench_die("start: the sum is %llu, expected %u", (unsigned long long)word[2], (unsigned)size);
    if (!shows)
        return;
    show(size, "llcl_team_world", "ms", world);
    show(size, "first barrier with its plan", "ms", first);
    show(size, "second barrier", "ms", second);
    show(size, "allreduce with its plan", "ms", sum);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    uint64_t clock = bench_now_ns();
    llcl_context_t *context;
    llcl_region_t *region;
    if (options.mode != NULL)
        setenv("LLCL_EXECUTION", options.mode, 1);
    bench_set_mode(options.mode != NULL ? options.mode : "auto");
    bench_check(llcl_init(NULL, &context), "llcl_init");
    double init = lap(&clock);
    uint32_t size = llcl_size(context), me = llcl_rank(context);
    bench_check(llcl_region_allocate(context, 4096, 0, &region), "llcl_region_allocate");
    llcl_remote_t mine = llcl_region_remote(region, 0), *words = calloc(size, sizeof *words);
    if (words == NULL)
        bench_die("start: no memory for %u ranks", (unsigned)size);
    bench_check(llcl_allgather_bytes(context, &mine, sizeof mine, words), "llcl_allgather_bytes");
    double all_in = since_launch();
    if (me == 0) {
        bench_begin(&options, about);
        show(size, "llcl_init of rank 0", "ms", init);
        show(size, "launcher's start to all ranks in", "ms", all_in);
    }
    collectives(context, region, me == 0);
    if (me == 0)
        contact(context, words);
    bench_check(llcl_allgather_bytes(context, NULL, 0, NULL), "llcl_allgather_bytes");
    clock = bench_now_ns();
    bench_check(llcl_finalize(context), "llcl_finalize");
    if (me == 0) {
        show(size, "llcl_finalize", "ms", lap(&clock));
        show(size, "launcher's start to the end of rank 0", "ms", since_launch());
        bench_end();
    }
    free(words);
    return 0;
}
