/* Teams. A team of GASNet is a team of libllcl with a table of its members' job ranks, a table of
 * their segments, and a region with the words of its barriers. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* All teams and pairs. Each has a copy of the places that it names, in its own order. `known` has
 * the originals of the copies, by endpoint index and job rank; NULL: no segment. `listing` guards
 * both and the copies; inlined functions read the copies without it. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct team *teams;
static struct gexl_place *known[GASNET_MAXEPS];

struct team *team_allocate(gex_Rank_t rank, gex_Rank_t size) {
    struct team *team = calloc(1, sizeof *team + size * sizeof(struct gexl_place));
    if (!team) {
        fatal("no memory for a team of %u", size);
    }
    team->head.rank = rank;
    team->head.size = size;
    return team;
}

/* Writes changed places only, because other threads read the unchanged ones. */
static void refresh(struct team *team) {
    struct gexl_place *places = (struct gexl_place *)gexl_places(&team->head);
    for (gex_Rank_t r = 0; r < team->head.size && known[team->index]; r++) {
        const struct gexl_place *now = &known[team->index][gex_TM_TranslateRankToJobrank(&team->head, r)];
        if (memcmp(&places[r], now, sizeof *now)) {
            places[r] = *now;
        }
    }
}

void teams_place(gex_EP_Index_t index, gex_Rank_t jobrank, const struct gexl_place *place) {
    pthread_mutex_lock(&listing);
    if (!known[index] && !(known[index] = calloc(job.size, sizeof *place))) {
        fatal("no memory for the segments of %u ranks", job.size);
    }
    known[index][jobrank] = *place;
    for (struct team *team = teams; team; team = team->next_of_all) {
        refresh(team);
    }
    pthread_mutex_unlock(&listing);
}

bool is_in_segment(const void *address) {
    for (gex_EP_Index_t i = 0; i < GASNET_MAXEPS; i++) {
        for (gex_Rank_t r = 0; known[i] && r < job.size; r++) {
            const struct gexl_place *place = &known[i][r];
            uintptr_t here = place->base + place->at.delta - GEXL_MAPPED;
            if (place->size && (uintptr_t)address - here < place->size) {
                return true;
            }
        }
    }
    return false;
}

void team_list(struct team *team) {
    pthread_mutex_lock(&listing);
    refresh(team);
    team->next_of_all = teams;
    teams = team;
    pthread_mutex_unlock(&listing);
}

static void team_unlist(struct team *team) {
    pthread_mutex_lock(&listing);
    struct team **at = &teams;
    while (*at != team) {
        at = &(*at)->next_of_all;
    }
    *at = team->next_of_all;
    pthread_mutex_unlock(&listing);
}

void must_be_a_team(gex_TM_t tm, const char *call) {
    if (!tm || team_of(tm)->is_pair) {
        fatal("%s of %s", call, tm ? "a pair, which is no team" : "GEX_TM_INVALID");
    }
}

static struct team *team_new(llcl_team_t *llcl, gex_Rank_t rank, gex_Rank_t size, gex_Flags_t flags) {
    struct team *team = team_allocate(rank, size);
    size_t table = size * sizeof(llcl_remote_t);
    team->llcl = llcl;
    team->flags = flags;
    while (1u << team->steps < size) {
        team->steps++;
    }
    if (team->steps > STEPS) {
        fatal("a team of %u ranks, at most %d", size, GASNET_MAXNODES);
    }
    /* Behind the words lie the buffers of the allgather in team_make(): this rank's address, then
     * all members'. */
    must(llcl_region_allocate(job.context, sizeof(struct control) + sizeof(llcl_remote_t) + table, 0, &team->region),
         "memory for a team");
    team->control = llcl_region_address(team->region);
    return team;
}

static void find_words(struct team *team, const llcl_remote_t *remotes) {
    for (unsigned k = 0; k < team->steps; k++) {
        gex_Rank_t peer = (team->head.rank + (1u << k)) % team->head.size;
        struct control_at control = control_find(gex_TM_TranslateRankToJobrank(&team->head, peer), remotes[peer]);
        team->there[k] = word_find(&control, offsetof(struct control, arrived) + k * sizeof(struct word));
    }
}

/* Makes a team; collective. The members gather the addresses of their words. */
struct team *team_make(llcl_team_t *llcl, gex_Flags_t flags) {
    struct team *team = team_new(llcl, llcl_team_rank(llcl), llcl_team_size(llcl), flags);
    llcl_remote_t *mine = (llcl_remote_t *)(team->control + 1);
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    gex_Rank_t *numbers = malloc(team->head.size * sizeof *numbers);
    if (!numbers) {
        fatal("no memory for a team of %u", team->head.size);
    }
    for (gex_Rank_t r = 0; r < team->head.size; r++) {
        numbers[r] = llcl_team_peer(llcl, r);
    }
    team->head.jobranks = numbers;
    *mine = llcl_region_remote(team->region, 0);
    params.team = llcl;
    params.send = llcl_region_local(team->region, sizeof(struct control));
    params.receive = llcl_region_local(team->region, sizeof(struct control) + sizeof *mine);
    params.count = sizeof *mine;
    params.type = LLCL_TYPE_U8;
    must(llcl_allgather(&params), "making a team");
    find_words(team, mine + 1);
    team_list(team);
    return team;
}

void team_begin(void) {
    llcl_team_t *all;
    must(llcl_team_world(job.context, &all), "gex_Client_Init");
    struct team *team = team_new(all, job.rank, job.size, 0);
    llcl_remote_t mine = llcl_region_remote(team->region, 0);
    llcl_remote_t *remotes = malloc(job.size * sizeof *remotes);
    job.controls = malloc(job.size * sizeof *job.controls);
    if (!remotes || !job.controls) {
        fatal("gex_Client_Init: no memory for tables of %u ranks", job.size);
    }
    must(llcl_allgather_bytes(job.context, &mine, sizeof mine, remotes), "gex_Client_Init");
    for (gex_Rank_t r = 0; r < job.size; r++) {
        job.controls[r] = control_find(r, remotes[r]);
    }
    find_words(team, remotes);
    free(remotes);
    team_list(team);
    job.world = team;
    gexl_world = &team->head;
}

/* The conduit needs no scratch memory. It keeps what the client gives until gex_TM_Destroy returns
 * it. */
#define QUERY (GEX_FLAG_TM_SCRATCH_SIZE_MIN | GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED)
#define SMALLEST 64

size_t gex_TM_Split(gex_TM_t *new_tm, gex_TM_t parent, int color, int key, void *scratch, size_t scratch_size,
                    gex_Flags_t flags) {
    llcl_team_t *llcl;
    must_be_up("gex_TM_Split");
    must_be_a_team(parent, "gex_TM_Split");
    if (flags & QUERY) {
        return new_tm ? SMALLEST : 0;
    }
    if (new_tm && (uint32_t)color == LLCL_TEAM_NONE) {
        fatal("gex_TM_Split: color is %d, which this conduit does not allow", color);
    }
    meet(team_of(parent));
    /* libllcl compares keys as unsigned numbers; the flipped sign bit keeps negative keys the
     * lowest. */
    must(llcl_team_split(team_of(parent)->llcl, new_tm ? (uint32_t)color : LLCL_TEAM_NONE,
                         (uint32_t)key ^ 0x80000000u, &llcl),
         "gex_TM_Split");
    if (new_tm) {
        struct team *team = team_make(llcl, flags);
        if (!(flags & GEX_FLAG_TM_NO_SCRATCH)) {
            team->scratch = (gex_Memvec_t){scratch, scratch_size};
        }
        *new_tm = &team->head;
    }
    return 0;
}

static void *scratch_of(const struct team *team, gex_Addr_t *scratch, gex_Flags_t flags) {
    if (flags & GEX_FLAG_TM_GLOBAL_SCRATCH) {
        return scratch[team->head.rank];
    }
    return scratch[0];
}

size_t gex_TM_Create(gex_TM_t *new_tms, size_t new_count, gex_TM_t parent, gex_EP_Location_t *members, size_t count,
                     gex_Addr_t *scratch, size_t scratch_size, gex_Flags_t flags) {
    llcl_team_t *llcl;
    must_be_up("gex_TM_Create");
    must_be_a_team(parent, "gex_TM_Create");
    if (flags & QUERY) {
        return count ? SMALLEST : 0;
    }
    meet(team_of(parent));
    if (!count || !new_count) {
        return 0;
    }
    uint32_t *ranks = malloc(count * sizeof *ranks);
    if (!ranks) {
        fatal("gex_TM_Create: no memory for %zu ranks", count);
    }
    for (size_t i = 0; i < count; i++) {
        ranks[i] = flags & GEX_FLAG_RANK_IS_JOBRANK ? members[i].gex_rank
                                                    : gex_TM_TranslateRankToJobrank(parent, members[i].gex_rank);
        if (members[i].gex_ep_index) {
            fatal("gex_TM_Create: endpoint %u of rank %u; only endpoints 0 can be members", members[i].gex_ep_index,
                  ranks[i]);
        }
    }
    must(llcl_team_create(job.context, ranks, (uint32_t)count, &llcl), "gex_TM_Create");
    free(ranks);
    struct team *team = team_make(llcl, flags);
    if (scratch && !(flags & GEX_FLAG_TM_NO_SCRATCH)) {
        team->scratch = (gex_Memvec_t){scratch_of(team, scratch, flags), scratch_size};
    }
    new_tms[0] = &team->head;
    return 0;
}

/* Begins with a barrier: no member may free its words while another one is still in an earlier
 * barrier. */
int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch, gex_Flags_t flags) {
    struct team *team = team_of(tm);
    must_be_up("gex_TM_Destroy");
    must_be_a_team(tm, "gex_TM_Destroy");
    if (tm == gexl_world) {
        fatal("gex_TM_Destroy of the team of gex_Client_Init");
    }
    (void)flags;
    meet(team);
    plans_free(team);
    bool lent = team->scratch.gex_addr && team->scratch.gex_len;
    if (lent && scratch) {
        *scratch = team->scratch;
    }
    team_forget(team);
    team_unlist(team);
    must(llcl_team_free(team->llcl), "gex_TM_Destroy");
    must(llcl_region_free(team->region), "gex_TM_Destroy");
    free((void *)team->head.jobranks);
    free(team);
    return lent && scratch;
}

gex_Client_t gex_TM_QueryClient(gex_TM_t tm) {
    (void)tm;
    return &job.client;
}
gex_EP_t gex_TM_QueryEP(gex_TM_t tm) {
    (void)tm;
    return &job.ep;
}
gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm) { return team_of(tm)->flags; }
void gex_TM_SetCData(gex_TM_t tm, const void *value) { team_of(tm)->data = value; }
void *gex_TM_QueryCData(gex_TM_t tm) { return (void *)team_of(tm)->data; }

gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank) {
    for (gex_Rank_t r = 0; r < tm->size; r++) {
        if (gex_TM_TranslateRankToJobrank(tm, r) == jobrank) {
            return r;
        }
    }
    return GEX_RANK_INVALID;
}

gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags) {
    gex_EP_Location_t location = {gex_TM_TranslateRankToJobrank(tm, rank), 0};
    (void)flags;
    return location;
}
