/* The resident memory of a rank, and the memory that a peer costs it, before and after the first
 * contact. The curve over different numbers of ranks is the result. */
#include "resident.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *about = "Resident memory of a rank after llcl_init, and what each peer takes, untouched and written to.";

/* Runs this program as a world of one rank. The difference is the memory for peers. */
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
        bench_die("memory: the world of one printed nothing");
    resident_t alone;
    if (sscanf(text, "%lf %lf", &alone.all, &alone.own) != 2)
        bench_die("memory: the world of one printed '%s'", text);
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

static void show(uint32_t size, const char *what, const char *unit, double value)
{
    bench_record_t record = {.what = what, .unit = unit, .ranks = (int)size, .threads = 1};
    bench_add(&record.series, NAN, value, NAN);
    bench_emit(&record);
}

/* Rank 0 writes a word to every rank. Returns the memory that this adds. */
static usage_t contact(llcl_context_t *context, const llcl_remote_t *words)
{
    usage_t before = usage(), after;
    for (uint32_t peer = 1; peer < llcl_size(context); peer++) {
        llcl_write_value_params_t value = {.peer = peer, .destination = words[peer], .value = 1, .size = 8};
        bench_check(llcl_write_value(context, &value), "llcl_write_value");
    }
    after = usage();
    after.descriptors -= before.descriptors;
    after.mappings -= before.mappings;
    after.address_kib -= before.address_kib;
    after.own_kib -= before.own_kib;
    after.private_kib -= before.private_kib;
    return after;
}

static void report(const bench_options_t *options, uint32_t size, const resident_t *all, resident_t alone, usage_t touched)
{
    double peers = size > 1 ? size - 1 : 1;
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
    show(size, "per contacted peer; descriptors", "", touched.descriptors / peers);
    show(size, "per contacted peer; mappings", "", touched.mappings / peers);
    show(size, "per contacted peer; address space", "KiB", touched.address_kib / peers);
    show(size, "per contacted peer; resident with page tables", "KiB", touched.own_kib / peers);
    show(size, "per contacted peer; of that private", "KiB", touched.private_kib / peers);
    bench_note("own memory: resident pages without unchanged pages of the program's and libraries' files; contacted: rank 0 has written a word to a region of each rank");
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
    bench_check(llcl_allgather_bytes(context, NULL, 0, NULL), "llcl_allgather_bytes"); /* all ranks have initialised */
    resident_t mine = resident(), *all = calloc(size, sizeof *all);
    llcl_remote_t *words = calloc(size, sizeof *words);
    if (all == NULL || words == NULL)
        bench_die("memory: no memory for %u ranks", size);
    bench_check(llcl_allgather_bytes(context, &mine, sizeof mine, all), "llcl_allgather_bytes");
    llcl_region_t *region;
    bench_check(llcl_region_allocate(context, 4096, 0, &region), "llcl_region_allocate");
    llcl_remote_t word = llcl_region_remote(region, 0);
    bench_check(llcl_allgather_bytes(context, &word, sizeof word, words), "llcl_allgather_bytes");
    if (llcl_rank(context) == 0)
        report(&options, size, all, alone, contact(context, words));
    bench_check(llcl_allgather_bytes(context, NULL, 0, NULL), "llcl_allgather_bytes"); /* no rank frees its memory before */
    free(words);
    free(all);
    bench_check(llcl_finalize(context), "llcl_finalize");
    return 0;
}
