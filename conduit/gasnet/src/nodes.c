/* Neighbourhoods: the ranks of a node, which share memory. */
#include "internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By rank: the lowest rank of its neighbourhood. */
static gex_Rank_t *firsts;
/* This rank's neighbourhood, and the rank's index in it. */
static gex_RankInfo_t *members;
static gex_Rank_t member_count, my_place;

static bool share_memory(gex_Rank_t a, gex_Rank_t b) { return firsts[a] == firsts[b]; }

bool is_far(gex_Rank_t jobrank) { return !share_memory(jobrank, job.rank); }

bool any_far(void) { return member_count < job.size; }

/* The cores that a rank may use, and their machine. A neighbourhood is no machine: LLCL_NODE_ID and
 * LLCL_TRANSPORT may split one machine into several. */
struct cores {
    char machine[40];
    cpu_set_t set;
};

static struct cores own_cores(void) {
    struct cores own;
    memset(&own, 0, sizeof own);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(own.machine, sizeof own.machine, file)) {
            own.machine[0] = 0;
        }
        fclose(file);
    }
    sched_getaffinity(0, sizeof own.set, &own.set);
    return own;
}

/* A launcher may have bound each rank to a core of its own, so only the cores of all ranks of the
 * machine together tell. */
bool has_core_for_each_rank(void) {
    struct cores own = own_cores(), *all = malloc(job.size * sizeof *all);
    int ranks = 0;
    if (!all) {
        fatal("gex_Client_Init: no memory for tables of %u ranks", job.size);
    }
    must(llcl_allgather_bytes(job.context, &own, sizeof own, all), "gathering the ranks' cores");
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (!strcmp(all[r].machine, own.machine)) {
            CPU_OR(&own.set, &own.set, &all[r].set);
            ranks++;
        }
    }
    free(all);
    return CPU_COUNT(&own.set) >= ranks;
}

/* Asks libllcl how it reaches each peer, then gathers the lowest rank of each rank's
 * neighbourhood. */
void nodes_begin(void) {
    gex_Rank_t *found = malloc(job.size * sizeof *found), first = job.rank;
    firsts = malloc(job.size * sizeof *firsts);
    if (!found || !firsts) {
        fatal("gex_Client_Init: no memory for tables of %u ranks", job.size);
    }
    job.medium = SIZE_MAX;
    for (gex_Rank_t r = 0; r < job.size; r++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        must(llcl_query_peer(job.context, r, &info), "querying a peer");
        job.medium = info.am_payload < job.medium ? info.am_payload : job.medium;
        if (info.transport != LLCL_TRANSPORT_WIRE || r == job.rank) {
            first = r < first ? r : first;
            my_place += r < job.rank;
            found[member_count++] = r;
        }
    }
    must(llcl_allgather_bytes(job.context, &first, sizeof first, firsts), "gathering the ranks' nodes");
    members = (gex_RankInfo_t *)found;
}

gex_Rank_t node_of(gex_Rank_t jobrank, gex_Rank_t *count) {
    gex_Rank_t number = 0, nodes = 0;
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (firsts[r] == r) {
            number += r < firsts[jobrank];
            nodes++;
        }
    }
    if (count) {
        *count = nodes;
    }
    return number;
}

void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine) {
    if (info) {
        *info = members;
    }
    if (count) {
        *count = member_count;
    }
    if (mine) {
        *mine = my_place;
    }
}

void gex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine) {
    gex_System_QueryNbrhdInfo(info, count, mine);
}

void gex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *nbrhd, gex_Rank_t *hosts, gex_Rank_t *host) {
    gex_Rank_t count, number = node_of(job.rank, &count);
    gex_Rank_t *counts[] = {nbrhds, hosts}, *numbers[] = {nbrhd, host};
    for (int i = 0; i < 2; i++) {
        if (counts[i]) {
            *counts[i] = count;
        }
        if (numbers[i]) {
            *numbers[i] = number;
        }
    }
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int count) {
    if (!table || count < 0) {
        return refuse(GASNET_ERR_BAD_ARG, "gasnet_getNodeInfo: table %p, count %d", (void *)table, count);
    }
    for (int i = 0; i < count && i < (int)job.size; i++) {
        table[i].host = table[i].supernode = node_of((gex_Rank_t)i, NULL);
    }
    return GASNET_OK;
}
