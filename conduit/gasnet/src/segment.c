/* Segments, their binding to endpoints, and their publication. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment) {
    (void)segment;
    return &job.client;
}
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment) {
    (void)segment;
    return 0;
}
void *gex_Segment_QueryAddr(gex_Segment_t segment) { return segment->address; }
uintptr_t gex_Segment_QuerySize(gex_Segment_t segment) { return segment->size; }
void gex_Segment_SetCData(gex_Segment_t segment, const void *value) { segment->data = value; }
void *gex_Segment_QueryCData(gex_Segment_t segment) { return (void *)segment->data; }

/* Half the machine's memory divided by the number of ranks, or GASNET_MAX_SEGSIZE if that is
 * less. */
uintptr_t gasnet_getMaxLocalSegmentSize(void) {
    uint64_t memory = gasnett_getPhysMemSz(1), most = memory / 2 / (job.size ? job.size : 1);
    gex_Rank_t on_host;
    gex_System_QueryHostInfo(NULL, &on_host, NULL);
    uint64_t wanted = limit_from_environment("GASNET_MAX_SEGSIZE", most, memory, on_host ? on_host : 1);
    most = wanted < most ? wanted : most;
    return most < GASNET_PAGESIZE ? GASNET_PAGESIZE : most / GASNET_PAGESIZE * GASNET_PAGESIZE;
}
uintptr_t gasnet_getMaxGlobalSegmentSize(void) { return job.segment; }

/* The machines of a job may have different amounts of memory, and ranks different environments: so
 * the size that every rank can attach is the least of all. */
void segment_begin(void) {
    uintptr_t mine = gasnet_getMaxLocalSegmentSize(), *all = malloc(job.size * sizeof *all);
    if (!all) {
        fatal("gex_Client_Init: no memory for tables of %u ranks", job.size);
    }
    must(llcl_allgather_bytes(job.context, &mine, sizeof mine, all), "gathering the sizes of segments");
    job.segment = mine;
    for (gex_Rank_t r = 0; r < job.size; r++) {
        job.segment = all[r] < job.segment ? all[r] : job.segment;
    }
    free(all);
}

static int segment_make(gex_Segment_t *segment, void *address, uintptr_t size) {
    struct gexl_segment *made = calloc(1, sizeof *made);
    if (!made) {
        return refuse(GASNET_ERR_RESOURCE, "a segment: no memory for its description");
    }
    llcl_status_t status = address ? llcl_region_register(job.context, address, size, 0, &made->region)
                                   : llcl_region_allocate(job.context, size, 0, &made->region);
    if (status != LLCL_OK) {
        free(made);
        return refuse(GASNET_ERR_RESOURCE, "a segment of %zu bytes: %s", (size_t)size, llcl_last_error());
    }
    made->mapped = !address;
    made->address = llcl_region_address(made->region);
    made->size = size;
    *segment = made;
    return GASNET_OK;
}

int gex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t size,
                       gex_MK_t kind, gex_Flags_t flags) {
    must_be_up("gex_Segment_Create");
    if (!segment || client != &job.client || kind != GEX_MK_HOST || flags || !size) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_Segment_Create: %zu bytes with flags %#x; expected a place for the "
                      "segment, the client, at least 1 byte, GEX_MK_HOST and no flags", (size_t)size, flags);
    }
    if (!address && size > gasnet_getMaxLocalSegmentSize()) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_Segment_Create: %zu bytes, at most %zu", (size_t)size,
                      (size_t)gasnet_getMaxLocalSegmentSize());
    }
    return segment_make(segment, address, size);
}

static struct gexl_place mapped_at(uintptr_t base, uintptr_t size, void *here) {
    return (struct gexl_place){base, size < 8 ? 0 : size - 7, {(uintptr_t)here - base + GEXL_MAPPED}, size};
}

static void bind(gex_EP_t ep, gex_Segment_t segment) {
    struct gexl_place place = mapped_at((uintptr_t)segment->address, segment->size, segment->address);
    ep->segment = segment;
    teams_place(ep->index, job.rank, &place);
}

int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags) {
    must_be_up("gex_EP_BindSegment");
    if (!ep || !segment || flags) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_EP_BindSegment: expected an endpoint, a segment and no flags");
    }
    if (ep->segment) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_EP_BindSegment: endpoint %u has a segment already", ep->index);
    }
    bind(ep, segment);
    return GASNET_OK;
}

/* An access to a destroyed segment of this rank then ends the job. The specification forbids peers
 * to make one. */
void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags) {
    static const struct gexl_place nothing;
    must_be_up("gex_Segment_Destroy");
    if (!segment || flags) {
        fatal("gex_Segment_Destroy: expected a segment and no flags");
    }
    if (segment->attached) {
        fatal("gex_Segment_Destroy: the segment of gex_Segment_Attach lives as long as the job");
    }
    for (gex_EP_Index_t i = 0; i < GASNET_MAXEPS; i++) {
        if (job.eps[i] && job.eps[i]->segment == segment) {
            job.eps[i]->segment = NULL;
            teams_place(i, job.rank, &nothing);
        }
    }
    must(llcl_region_free(segment->region), "gex_Segment_Destroy");
    free(segment);
}

/* A bound segment, as ranks publish it. */
struct card {
    gex_EP_Index_t index;
    uint32_t mapped;
    llcl_remote_t remote;
    uint64_t base;
    uint64_t size;
};
/* All segments that a rank publishes in one call. */
struct notice {
    uint64_t count;
    struct card cards[GASNET_MAXEPS];
};

static struct card card_of(const struct gexl_ep *ep) {
    const struct gexl_segment *segment = ep->segment;
    return (struct card){ep->index, segment->mapped, llcl_region_remote(segment->region, 0),
                         (uintptr_t)segment->address, segment->size};
}

/* Enters a segment that another rank has published. An older `far` is not freed, because another
 * thread may be reading it. */
static void learn(gex_Rank_t rank, const struct card *card) {
    struct gexl_place place = {.base = card->base};
    if (rank == job.rank) {
        return; /* bind() has entered it */
    }
    if (card->mapped && !is_far(rank)) {
        void *here = llcl_remote_pointer(job.context, rank, card->remote, card->size);
        if (!here) {
            fatal("the segment of rank %u cannot be mapped: %s", rank, llcl_last_error());
        }
        place = mapped_at(card->base, card->size, here);
    } else {
        struct gexl_far *far = malloc(sizeof *far);
        if (!far) {
            fatal("no memory for the segment of rank %u", rank);
        }
        *far = (struct gexl_far){card->remote, card->size};
        place.at.far = far;
    }
    teams_place(card->index, rank, &place);
}

/* Gathers the notices of a team's ranks. */
static void exchange(struct team *team, const struct notice *mine) {
    llcl_region_t *region;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    meet(team);
    must(llcl_region_allocate(job.context, (team->head.size + (size_t)1) * sizeof *mine, 0, &region),
         "memory for the ranks' segments");
    struct notice *notices = llcl_region_address(region);
    notices[0] = *mine;
    params.team = team->llcl;
    params.send = llcl_region_local(region, 0);
    params.receive = llcl_region_local(region, sizeof *mine);
    params.count = sizeof *mine;
    params.type = LLCL_TYPE_U8;
    must(llcl_allgather(&params), "publishing segments");
    for (gex_Rank_t r = 0; r < team->head.size; r++) {
        for (uint64_t i = 0; i < notices[1 + r].count; i++) {
            learn(gex_TM_TranslateRankToJobrank(&team->head, r), &notices[1 + r].cards[i]);
        }
    }
    must(llcl_region_free(region), "publishing segments");
}

int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t count, gex_Flags_t flags) {
    struct notice mine = {0};
    must_be_up("gex_EP_PublishBoundSegment");
    must_be_a_team(tm, "gex_EP_PublishBoundSegment");
    if (flags || count > GASNET_MAXEPS) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_EP_PublishBoundSegment: %zu endpoints and flags %#x, expected at "
                      "most %d and none", count, flags, GASNET_MAXEPS);
    }
    for (size_t i = 0; i < count; i++) {
        if (eps[i]->segment) {
            mine.cards[mine.count++] = card_of(eps[i]);
        }
    }
    exchange(team_of(tm), &mine);
    return GASNET_OK;
}

int gex_Segment_Attach(gex_Segment_t *segment, gex_TM_t tm, uintptr_t size) {
    must_be_up("gex_Segment_Attach");
    if (tm != gexl_world) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_Segment_Attach: tm is not the team of gex_Client_Init");
    }
    if (job.ep.segment) {
        return refuse(GASNET_ERR_RESOURCE, "gex_Segment_Attach: this endpoint has a segment already");
    }
    if (!size || size % GASNET_PAGESIZE || size > gasnet_getMaxLocalSegmentSize()) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_Segment_Attach: size %zu, expected a multiple of %d up to %zu",
                      (size_t)size, GASNET_PAGESIZE, (size_t)gasnet_getMaxLocalSegmentSize());
    }
    int answer = segment_make(segment, NULL, size);
    if (answer != GASNET_OK) {
        return answer;
    }
    (*segment)->attached = true;
    bind(&job.ep, *segment);
    struct notice mine = {1, {card_of(&job.ep)}};
    exchange(job.world, &mine);
    /* Ranks that have left this barrier may send messages, whose handlers may use what the client
     * makes ready after the attach: so this thread runs them only when the client polls. */
    meet_without_handlers(job.world);
    return GASNET_OK;
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owner_address, void **local_address,
                                       uintptr_t *size, gex_Flags_t flags) {
    if (rank >= tm->size) {
        fatal("gex_EP_QueryBoundSegmentNB: rank %u of a team of %u", rank, tm->size);
    }
    const struct gexl_place *place = &gexl_places(tm)[rank];
    const struct gexl_far *far = far_of(place);
    (void)flags;
    if (size) {
        *size = far ? far->size : place->size;
    }
    if (place->base && owner_address) {
        *owner_address = (void *)place->base;
    }
    if (place->base && local_address) {
        *local_address = far ? NULL : (void *)(place->base + place->at.delta - GEXL_MAPPED);
    }
    return GEX_EVENT_INVALID;
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owner_address, void **local_address,
                           uintptr_t *size) {
    uintptr_t bytes;
    gex_EP_QueryBoundSegmentNB(tm, rank, NULL, NULL, &bytes, 0);
    if (!bytes) {
        return 1;
    }
    gex_EP_QueryBoundSegmentNB(tm, rank, owner_address, local_address, size, 0);
    return 0;
}
