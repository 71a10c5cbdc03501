/* Clients, endpoints and segments: the objects, and where the memory of every rank lies. */
#include "internal.h"

#include <stdlib.h>

struct gexl_place *gexl_places;

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client) { return client->flags; }
const char *gex_Client_QueryName(gex_Client_t client) { return client->name; }
void gex_Client_SetCData(gex_Client_t client, const void *value) { client->data = value; }
void *gex_Client_QueryCData(gex_Client_t client) { return (void *)client->data; }

gex_Client_t gex_EP_QueryClient(gex_EP_t ep) {
    (void)ep;
    return &job.client;
}
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep) {
    (void)ep;
    return 0;
}
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep) { return ep->segment; }
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep) {
    (void)ep;
    return 0;
}
gex_EP_Capabilities_t gex_EP_QueryCapabilities(gex_EP_t ep) {
    (void)ep;
    return GEX_EP_CAPABILITY_ALL;
}
void gex_EP_SetCData(gex_EP_t ep, const void *value) { ep->data = value; }
void *gex_EP_QueryCData(gex_EP_t ep) { return (void *)ep->data; }

/* What this conduit does not offer: endpoints and segments beyond the first, memory of devices. */
int gex_EP_Create(gex_EP_t *ep, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags) {
    (void)ep, (void)client, (void)capabilities, (void)flags;
    return refuse(GASNET_ERR_RESOURCE, "gex_EP_Create: a client has one endpoint (GASNET_MAXEPS)");
}
int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags) {
    (void)ep, (void)segment, (void)flags;
    return refuse(GASNET_ERR_RESOURCE, "gex_EP_BindSegment: segments are bound by gex_Segment_Attach only");
}
int gex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t size,
                       gex_MK_t kind, gex_Flags_t flags) {
    (void)segment, (void)client, (void)address, (void)size, (void)kind, (void)flags;
    return refuse(GASNET_ERR_RESOURCE, "gex_Segment_Create: segments are made by gex_Segment_Attach only");
}
void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags) {
    (void)segment, (void)flags;
    fatal("gex_Segment_Destroy: the segment of gex_Segment_Attach lives as long as the job");
}
int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const void *args, gex_Flags_t flags) {
    (void)kind, (void)client, (void)args, (void)flags;
    return refuse(GASNET_ERR_RESOURCE, "gex_MK_Create: there is no memory but the host's");
}
void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags) { (void)kind, (void)flags; }

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

/* Half the memory of the machine, in equal parts, or what GASNET_MAX_SEGSIZE says if that is less. */
uintptr_t gasnet_getMaxLocalSegmentSize(void) {
    uint64_t most = gasnett_getPhysMemSz(1) / 2 / (job.size ? job.size : 1);
    uint64_t wanted = (uint64_t)gasnett_getenv_int_withdefault("GASNET_MAX_SEGSIZE", (int64_t)most, 1 << 20);
    most = wanted < most ? wanted : most;
    return most < GASNET_PAGESIZE ? GASNET_PAGESIZE : most / GASNET_PAGESIZE * GASNET_PAGESIZE;
}
uintptr_t gasnet_getMaxGlobalSegmentSize(void) { return gasnet_getMaxLocalSegmentSize(); }

/* What ranks tell each other of their segments. */
struct card {
    llcl_remote_t remote;
    uint64_t base;
    uint64_t size;
};

static void map_segments(const struct card *cards) {
    for (gex_Rank_t r = 0; r < job.size; r++) {
        struct gexl_place *place = &gexl_places[r];
        place->base = cards[r].base;
        place->size = cards[r].size;
        place->here = llcl_remote_pointer(job.context, r, cards[r].remote, cards[r].size);
        if (!place->here) {
            fatal("gex_Segment_Attach: the segment of rank %u cannot be mapped: %s", r, llcl_last_error());
        }
    }
    gexl_places[job.rank].here = (unsigned char *)gexl_places[job.rank].base;
}

int gex_Segment_Attach(gex_Segment_t *segment, gex_TM_t tm, uintptr_t size) {
    llcl_region_t *region;
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
    must(llcl_region_allocate(job.context, size, 0, &region), "gex_Segment_Attach");
    struct card *cards = malloc(job.size * sizeof *cards);
    struct card mine = {llcl_region_remote(region, 0), (uintptr_t)llcl_region_address(region), size};
    if (!cards) {
        fatal("gex_Segment_Attach: no memory for a table of %u ranks", job.size);
    }
    must(llcl_allgather_bytes(job.context, &mine, sizeof mine, cards), "gex_Segment_Attach");
    map_segments(cards);
    free(cards);
    job.segment.address = llcl_region_address(region);
    job.segment.size = size;
    job.ep.segment = &job.segment;
    *segment = &job.segment;
    must(llcl_allgather_bytes(job.context, NULL, 0, NULL), "gex_Segment_Attach");
    return GASNET_OK;
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owner_address, void **local_address,
                                       uintptr_t *size, gex_Flags_t flags) {
    const struct gexl_place *place = &gexl_places[gex_TM_TranslateRankToJobrank(tm, rank)];
    (void)flags;
    if (size) {
        *size = place->size;
    }
    if (place->size && owner_address) {
        *owner_address = (void *)place->base;
    }
    if (place->size && local_address) {
        *local_address = place->here;
    }
    return GEX_EVENT_INVALID;
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owner_address, void **local_address,
                           uintptr_t *size) {
    if (!gexl_places[gex_TM_TranslateRankToJobrank(tm, rank)].size) {
        return 1;
    }
    gex_EP_QueryBoundSegmentNB(tm, rank, owner_address, local_address, size, 0);
    return 0;
}

int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t count, gex_Flags_t flags) {
    (void)tm, (void)eps, (void)count, (void)flags;
    return GASNET_OK; /* gex_Segment_Attach has published the only segment */
}

void *gexl_outside(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size) {
    static _Alignas(16) char nowhere[16];
    if (rank >= tm->size) {
        fatal("rank %u of a team of %u", rank, tm->size);
    }
    if (size) {
        gex_Rank_t owner = gex_TM_TranslateRankToJobrank(tm, rank);
        const struct gexl_place *place = &gexl_places[owner];
        fatal("%zu bytes at %p are not in the segment of rank %u, which has %zu bytes at %p", size, address, owner,
              (size_t)place->size, (void *)place->base);
    }
    return nowhere;
}
