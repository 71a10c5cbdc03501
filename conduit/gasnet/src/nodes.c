/* Neighbourhoods, whose ranks share memory, and hosts, whose ranks are on one machine. */
#include "internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups of ranks. `firsts`, by rank: the lowest rank of its group. The other members describe this
 * rank's group: its ranks in order, and the place of this rank among them. */
struct group {
    gex_Rank_t *firsts;
    gex_RankInfo_t *members;
    gex_Rank_t count, place;
};
static struct group neighbourhood, host;
static bool enough_cores;

bool is_far(gex_Rank_t jobrank) { return neighbourhood.firsts[jobrank] != neighbourhood.firsts[job.rank]; }

bool any_far(void) { return neighbourhood.count < job.size; }

bool has_core_for_each_rank(void) { return enough_cores; }

/* What a rank tells the others: the lowest rank that it shares memory with, its machine, and the
 * cores that it may use. LLCL_NODE_ID and LLCL_TRANSPORT may split one machine into several
 * neighbourhoods, so a host is all ranks of a machine. */
struct about {
    gex_Rank_t first;
    char machine[40];
    cpu_set_t cores; /* empty: not known, since the machine has more cores than the type has bits */
};

static struct about about_me(void) {
    struct about own;
    memset(&own, 0, sizeof own);
    own.first = job.rank;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(own.machine, sizeof own.machine, file)) {
            own.machine[0] = 0;
        }
        fclose(file);
    }
    if (sched_getaffinity(0, sizeof own.cores, &own.cores)) {
        CPU_ZERO(&own.cores);
    }
    return own;
}

static void *table_of(size_t size) {
    void *table = malloc(job.size * size);
    if (!table) {
        fatal("gex_Client_Init: no memory for tables of %u ranks", job.size);
    }
    return table;
}

/* Fills in all but `firsts`. */
static void group_complete(struct group *group) {
    gex_Rank_t *found = table_of(sizeof *found);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (group->firsts[r] == group->firsts[job.rank]) {
            group->place += r < job.rank;
            found[group->count++] = r;
        }
    }
    group->members = (gex_RankInfo_t *)found;
}

/* The lowest rank on the machine of a rank. `firsts` holds the answers for all lower ranks. Where
 * the machine is not known, a neighbourhood counts as one. */
static gex_Rank_t first_of_machine(const struct about *all, const gex_Rank_t *firsts, gex_Rank_t rank) {
    if (all[rank].first != rank) {
        return firsts[all[rank].first];
    }
    for (gex_Rank_t r = 0; r < rank && all[rank].machine[0]; r++) {
        if (firsts[r] == r && !strcmp(all[r].machine, all[rank].machine)) {
            return r;
        }
    }
    return rank;
}

/* A launcher may have bound each rank to a core of its own, so only the cores of all ranks of the
 * host together tell. */
static bool cores_suffice(const struct about *all) {
    cpu_set_t cores = all[job.rank].cores;
    for (gex_Rank_t i = 0; i < host.count; i++) {
        const cpu_set_t *its = &all[host.members[i].gex_jobrank].cores;
        if (!CPU_COUNT(its)) {
            return gasnett_cpu_count() >= (int)host.count;
        }
        CPU_OR(&cores, &cores, its);
    }
    return CPU_COUNT(&cores) >= (int)host.count;
}

/* Asks libllcl how it reaches each peer, then gathers what the ranks tell. */
void nodes_begin(void) {
    struct about own = about_me(), *all = table_of(sizeof *all);
    job.medium = SIZE_MAX;
    for (gex_Rank_t r = 0; r < job.size; r++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        must(llcl_query_peer(job.context, r, &info), "querying a peer");
        job.medium = info.am_payload < job.medium ? info.am_payload : job.medium;
        if (info.transport != LLCL_TRANSPORT_WIRE && r < own.first) {
            own.first = r;
        }
    }
    must(llcl_allgather_bytes(job.context, &own, sizeof own, all), "gathering the ranks' nodes");
    neighbourhood.firsts = table_of(sizeof(gex_Rank_t));
    host.firsts = table_of(sizeof(gex_Rank_t));
    for (gex_Rank_t r = 0; r < job.size; r++) {
        neighbourhood.firsts[r] = all[r].first;
        host.firsts[r] = first_of_machine(all, host.firsts, r);
    }
    group_complete(&neighbourhood);
    group_complete(&host);
    enough_cores = cores_suffice(all);
    free(all);
}

/* The number of a rank's group among all `count` groups, in the order of their lowest ranks. */
static gex_Rank_t number_in(const struct group *group, gex_Rank_t jobrank, gex_Rank_t *count) {
    gex_Rank_t number = 0;
    *count = 0;
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (group->firsts[r] == r) {
            number += r < group->firsts[jobrank];
            ++*count;
        }
    }
    return number;
}

static void describe(const struct group *group, gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine) {
    if (info) {
        *info = group->members;
    }
    if (count) {
        *count = group->count;
    }
    if (mine) {
        *mine = group->place;
    }
}

void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine) {
    describe(&neighbourhood, info, count, mine);
}

void gex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *mine) {
    describe(&host, info, count, mine);
}

static void find_position(const struct group *group, gex_Rank_t *count, gex_Rank_t *number) {
    gex_Rank_t all, mine = number_in(group, job.rank, &all);
    if (count) {
        *count = all;
    }
    if (number) {
        *number = mine;
    }
}

void gex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *nbrhd, gex_Rank_t *hosts, gex_Rank_t *my_host) {
    find_position(&neighbourhood, nbrhds, nbrhd);
    find_position(&host, hosts, my_host);
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int count) {
    gex_Rank_t all;
    if (!table || count < 0) {
        return refuse(GASNET_ERR_BAD_ARG, "gasnet_getNodeInfo: table %p, count %d", (void *)table, count);
    }
    for (int i = 0; i < count && i < (int)job.size; i++) {
        table[i].host = number_in(&host, (gex_Rank_t)i, &all);
        table[i].supernode = number_in(&neighbourhood, (gex_Rank_t)i, &all);
        const struct gexl_place *place = &gexl_places(gexl_world)[i];
        table[i].offset = place->at.delta & GEXL_MAPPED ? place->at.delta - GEXL_MAPPED : 0;
    }
    return GASNET_OK;
}
