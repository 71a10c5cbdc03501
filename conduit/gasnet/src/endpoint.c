/* Clients and endpoints. The endpoint of gex_Client_Init has all capabilities. Endpoints of
 * gex_EP_Create have segments and handlers of their own, which peers reach through pairs; they are
 * members of no team. */
#include "internal.h"

#include <stdlib.h>

/* The capabilities that gex_EP_Create offers. */
#define OF_MORE (GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM | GEX_EP_CAPABILITY_VIS)

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client) { return client->flags; }
const char *gex_Client_QueryName(gex_Client_t client) { return client->name; }
void gex_Client_SetCData(gex_Client_t client, const void *value) { client->data = value; }
void *gex_Client_QueryCData(gex_Client_t client) { return (void *)client->data; }

gex_Client_t gex_EP_QueryClient(gex_EP_t ep) {
    (void)ep;
    return &job.client;
}
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep) { return ep->flags; }
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep) { return ep->segment; }
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep) { return ep->index; }
gex_EP_Capabilities_t gex_EP_QueryCapabilities(gex_EP_t ep) { return ep->capabilities; }
void gex_EP_SetCData(gex_EP_t ep, const void *value) { ep->data = value; }
void *gex_EP_QueryCData(gex_EP_t ep) { return (void *)ep->data; }

void endpoint_begin(void) {
    job.ep.capabilities = GEX_EP_CAPABILITY_ALL;
    if (!am_endpoint(&job.ep)) {
        fatal("gex_Client_Init: no memory for handlers");
    }
    job.eps[0] = &job.ep;
}

static int place_endpoint(gex_EP_t made) {
    int answer = GASNET_OK;
    pthread_mutex_lock(&making);
    while (made->index < GASNET_MAXEPS && job.eps[made->index]) {
        made->index++;
    }
    if (made->index == GASNET_MAXEPS) {
        answer = refuse(GASNET_ERR_RESOURCE, "gex_EP_Create: all %d endpoints exist", GASNET_MAXEPS);
    } else {
        job.eps[made->index] = made;
    }
    pthread_mutex_unlock(&making);
    return answer;
}

int gex_EP_Create(gex_EP_t *ep, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags) {
    must_be_up("gex_EP_Create");
    if (!ep || client != &job.client || !capabilities || capabilities & ~OF_MORE || flags & ~GEX_FLAG_HINT_ACCEL_ALL) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_EP_Create: capabilities %#x and flags %#x; expected a place for the "
                      "endpoint, the client, some of GEX_EP_CAPABILITY_RMA, _AM and _VIS, and no flags but hints",
                      capabilities, flags);
    }
    gex_EP_t made = calloc(1, sizeof *made);
    if (!made) {
        return refuse(GASNET_ERR_RESOURCE, "gex_EP_Create: no memory");
    }
    made->index = 1;
    made->capabilities = capabilities;
    made->flags = flags;
    int answer = capabilities & GEX_EP_CAPABILITY_AM && !am_endpoint(made)
                     ? refuse(GASNET_ERR_RESOURCE, "gex_EP_Create: no memory for handlers")
                     : place_endpoint(made);
    if (answer != GASNET_OK) {
        free(made->handlers);
        free(made);
        return answer;
    }
    *ep = made;
    return GASNET_OK;
}

/* Returns one object for all calls with the same two endpoints. Ranks of a pair are job ranks. */
gex_TM_t gex_TM_Pair(gex_EP_t ep, gex_EP_Index_t remote) {
    static struct team *pairs[GASNET_MAXEPS][GASNET_MAXEPS];
    if (!ep || remote >= GASNET_MAXEPS) {
        fatal("gex_TM_Pair: endpoint %u of the peers, at most %d", remote, GASNET_MAXEPS - 1);
    }
    pthread_mutex_lock(&making);
    struct team **pair = &pairs[ep->index][remote];
    if (!*pair) {
        *pair = team_allocate(job.rank, job.size);
        (*pair)->from = ep->index;
        (*pair)->index = remote;
        (*pair)->is_pair = true;
        team_list(*pair);
    }
    gex_TM_t head = &(*pair)->head;
    pthread_mutex_unlock(&making);
    return head;
}

int gex_MK_Create(gex_MK_t *kind, gex_Client_t client, const void *args, gex_Flags_t flags) {
    (void)kind, (void)client, (void)args, (void)flags;
    return refuse(GASNET_ERR_BAD_ARG, "gex_MK_Create: there is no memory but the host's");
}
void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags) { (void)kind, (void)flags; }
