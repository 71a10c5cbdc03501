/* Many senders, one receiver: total rate, fairness, changes of the most contended credit counter,
 * and the receiver's memory, with the policy in force. Rank 0 receives, all others send; each rank
 * is a process. */
#include "am_flow.h"
#include "resident.h"

#include <stdlib.h>
#include <string.h>

#define SHARES 16
#define TARGETS_AT 16 /* senders */

static const char *about = "Incast: all ranks but one send 8-byte active messages to rank 0 as fast as they can.";
static const char *const policy_names[] = {"?", "acquire", "limit", "distributed"};

typedef struct incast {
    bench_world_t world;
    flow_world_t *flows;
    const char *policy;
    uint32_t senders;
    llcl_capabilities_t can;
    uint64_t memory; /* rank 0: bytes of its slots and reply slots, from its statistics */
} incast_t;

static const char *case_of(const incast_t *incast, const char *what)
{
    static char name[96];
    snprintf(name, sizeof name, "%s; %u to 1%s%s", incast->policy, incast->senders, *what ? "; " : "", what);
    return name;
}

/* The number of changes, by all senders, of the credit counter that changed most often. */
static double hottest(const llcl_stats_t *before, const llcl_stats_t *after, uint32_t ranks)
{
    double most = 0;
    for (int share = 0; share < SHARES; share++) {
        double sum = 0;
        for (uint32_t rank = 0; rank < ranks; rank++)
            sum += (double)(after[rank].credit_updates[share] - before[rank].credit_updates[share]);
        most = sum > most ? sum : most;
    }
    return most;
}

static void rates(incast_t *incast, const bench_options_t *options)
{
    /* Long enough for every sender to get a core several times. */
    unsigned ms = options->quick ? 100 : 100 + 30 * (incast->senders < 20 ? incast->senders : 20);
    flow_t one = {.shape = FLOW_INCAST, .ranks = 1, .threads = 1, .size = 8, .ms = options->quick ? 40 : 80};
    flow_t all = {.shape = FLOW_INCAST, .ranks = incast->senders, .threads = 1, .size = 8, .ms = ms};
    flow_t trying = all;
    trying.try_form = 1;
    bench_series_t rate = {0}, fair = {0}, hot = {0}, try_rate = {0}, try_fair = {0};
    llcl_stats_t *first = NULL, *last = NULL;
    for (int r = 0; r < options->repeats; r++) {
        double alone = incast->senders > 1 ? flow_run(incast->flows, &one).millions : NAN;
        llcl_stats_t *before = am_stats(&incast->world);
        flow_result_t result = flow_run(incast->flows, &all);
        llcl_stats_t *after = am_stats(&incast->world);
        double most = hottest(before, after, incast->world.size);
        bench_add(&rate, alone, result.millions, NAN);
        bench_add(&fair, NAN, result.slowest_mean, NAN);
        bench_add(&hot, options->hottest > 0 ? options->hottest : NAN, most / (double)result.accepted, NAN);
        free(first);
        free(last);
        first = before;
        last = after;
        if (incast->senders == TARGETS_AT) {
            result = flow_run(incast->flows, &trying);
            bench_add(&try_rate, alone, result.millions, NAN);
            bench_add(&try_fair, NAN, result.slowest_mean, NAN);
        }
    }
    int asked = incast->senders == TARGETS_AT, distributed = incast->can.am_policy == LLCL_AM_POLICY_DISTRIBUTED;
    const bench_world_t *world = &incast->world;
    am_emit(world, case_of(incast, ""), "M/s", 1, 8, incast->senders > 1 ? "one of these senders alone" : NULL,
            asked ? "ratio>=0.7" : NULL, &rate);
    if (incast->senders > 1)
        am_emit(world, case_of(incast, "slowest / mean"), "ratio", 1, 8, NULL, asked ? "value>=0.5" : NULL, &fair);
    am_emit(world, case_of(incast, "hottest counter"), "changes", 1, 8, options->hottest > 0 ? "acquire" : NULL,
            asked && distributed ? "ratio<=0.4" : NULL, &hot);
    if (asked) {
        am_emit(world, case_of(incast, "try and yield"), "M/s", 1, 8, "one of these senders alone", NULL, &try_rate);
        am_emit(world, case_of(incast, "try and yield; slowest / mean"), "ratio", 1, 8, NULL, NULL, &try_fair);
    }
    incast->memory = last[0].am_memory;
    am_note_stats(world, case_of(incast, "last repeat"), first, last);
    free(first);
    free(last);
}

/* Compares the memory of the slots with that of one buffer per peer. In that scheme each sender has
 * as many slots as all senders together have here. A slot and a reply slot take about the same
 * memory in both: header, mark and payload. */
static void memory(const incast_t *incast)
{
    double slot = AM_HEADER_UP_TO + BENCH_LINE + (double)incast->can.am_medium;
    double per_peer = (double)incast->memory + (incast->senders - 1.0) * incast->can.am_slots * slot;
    bench_series_t slots = {0}, buffers = {0}, own = {0};
    bench_add(&slots, per_peer / 1024, (double)incast->memory / 1024, NAN);
    bench_add(&own, NAN, resident().own, NAN);
    bench_add(&buffers, NAN, per_peer / 1024, NAN);
    am_emit(&incast->world, case_of(incast, "memory of slots"), "KiB", 1, 0, "a buffer per peer", NULL, &slots);
    am_emit(&incast->world, case_of(incast, "own memory resident"), "KiB", 1, 0, NULL, NULL, &own);
    if (incast->can.am_policy == LLCL_AM_POLICY_ACQUIRE) {
        char name[64];
        snprintf(name, sizeof name, "buffer per peer; %u to 1; memory of slots", incast->senders);
        am_emit(&incast->world, name, "KiB", 1, 0, NULL, NULL, &buffers);
    }
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    if (options.repeats > 3)
        options.repeats = 3;
    if (options.policy != NULL)
        setenv("LLCL_AM_POLICY", options.policy, 1);
    incast_t incast;
    memset(&incast, 0, sizeof incast);
    incast.flows = flow_open(&incast.world, &options, 0);
    if (incast.world.size < 2 || incast.world.size > FLOW_LANES + 1)
        bench_die("incast: %u ranks, expected 2 to %d", incast.world.size, FLOW_LANES + 1);
    bench_unpin();
    incast.senders = incast.world.size - 1;
    incast.can.struct_size = sizeof incast.can;
    bench_check(llcl_query(incast.world.context, &incast.can), "llcl_query");
    incast.policy = policy_names[incast.can.am_policy <= LLCL_AM_POLICY_DISTRIBUTED ? incast.can.am_policy : 0];
    flow_t first = {.shape = FLOW_INCAST, .ranks = incast.senders, .threads = 1, .size = 8, .ms = 5};
    flow_run(incast.flows, &first); /* takes the costs of the first use */
    bench_begin(&options, about);
    rates(&incast, &options);
    if (incast.world.rank == 0)
        memory(&incast);
    bench_end();
    flow_close(incast.flows);
    return 0;
}
