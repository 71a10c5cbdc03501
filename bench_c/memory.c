/* Resident memory of a rank, and what a peer costs that is never talked to: run it with different numbers of ranks. */
#include "resident.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *about = "Resident memory of a rank after llcl_init, and bytes for each peer that is never talked to.";

/* The same program as a world of one: the measure for what the peers add. */
static resident_t alone_resident(const bench_options_t *options)
{
    int ends[2];
    if (pipe(ends) != 0)
        bench_die("memory: no pipe");
    pid_t child = fork();
    if (child < 0)
        bench_die("memory: fork failed");
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        unsetenv("LLCL_RANK");
        unsetenv("LLCL_SIZE");
        unsetenv("LLCL_HUB_FD");
        execl("/proc/self/exe", "memory", "--alone", options->mode ? "--mode" : (char *)NULL, options->mode, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    char text[64] = "";
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    waitpid(child, NULL, 0);
    if (got <= 0)
        bench_die("memory: the world of one told nothing");
    resident_t alone;
    if (sscanf(text, "%lf %lf", &alone.all, &alone.own) != 2)
        bench_die("memory: the world of one told '%s'", text);
    return alone;
}

static llcl_context_t *open_context(const bench_options_t *options)
{
    llcl_context_t *context;
    if (options->mode != NULL)
        setenv("LLCL_EXECUTION", options->mode, 1);
    bench_check(llcl_init(NULL, &context), "llcl_init");
    llcl_capabilities_t capabilities = {.struct_size = sizeof capabilities};
    bench_check(llcl_query(context, &capabilities), "llcl_query");
    bench_set_mode(capabilities.execution == LLCL_EXECUTION_AUTO      ? "auto"
                   : capabilities.execution == LLCL_EXECUTION_OFFLOAD ? "offload"
                                                                      : "direct");
    return context;
}

static void report(const bench_options_t *options, uint32_t size, const resident_t *all, resident_t alone)
{
    bench_record_t rank = {.what = "rank resident", .unit = "KiB", .limit_name = "16 MiB", .ranks = (int)size, .threads = 1,
                           .target = size == 2 ? "ratio<=1" : NULL};
    bench_record_t own = {.what = "rank resident; own memory", .unit = "KiB", .ranks = (int)size, .threads = 1};
    bench_record_t peer = {.what = "own memory per peer; against one rank", .unit = "bytes", .limit_name = "1 KiB",
                           .ranks = (int)size, .threads = 1};
    bench_record_t slope = peer;
    slope.what = "own memory per peer; against two ranks";
    slope.target = "ratio<=1";
    for (uint32_t i = 0; i < size && i < BENCH_MAX_REPEATS; i++) {
        bench_add(&rank.series, 16384, all[i].all, NAN);
        bench_add(&own.series, NAN, all[i].own, NAN);
        if (size > 1)
            bench_add(&peer.series, 1024, (all[i].own - alone.own) * 1024 / (size - 1), NAN);
        if (size > 2 && options->against > 0)
            bench_add(&slope.series, 1024, (all[i].own - options->against) * 1024 / (size - 2), NAN);
    }
    bench_begin(options, about);
    bench_emit(&rank);
    bench_emit(&own);
    if (peer.series.repeats > 0)
        bench_emit(&peer);
    if (slope.series.repeats > 0)
        bench_emit(&slope);
    bench_note("own memory: resident pages but those of program and libraries that reflect their files; no peer was talked to");
    bench_end();
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    if (options.alone) {
        llcl_context_t *context = open_context(&options);
        resident_t mine = resident();
        printf("%.0f %.0f\n", mine.all, mine.own);
        bench_check(llcl_finalize(context), "llcl_finalize");
        return 0;
    }
    const char *rank_text = getenv("LLCL_RANK");
    resident_t alone = {0, 0};
    if (rank_text != NULL && strcmp(rank_text, "0") == 0)
        alone = alone_resident(&options);
    llcl_context_t *context = open_context(&options);
    uint32_t size = llcl_size(context);
    bench_check(llcl_allgather_bytes(context, NULL, 0, NULL), "llcl_allgather_bytes"); /* everyone is there */
    resident_t mine = resident(), *all = calloc(size, sizeof *all);
    if (all == NULL)
        bench_die("memory: no memory for %u ranks", size);
    bench_check(llcl_allgather_bytes(context, &mine, sizeof mine, all), "llcl_allgather_bytes");
    if (llcl_rank(context) == 0)
        report(&options, size, all, alone);
    free(all);
    bench_check(llcl_finalize(context), "llcl_finalize");
    return 0;
}
