/* The functions of GASNet-1 that are not inlined calls of GASNet-EX, and handler-safe locks. */
#include "internal.h"

#include <stdlib.h>

int gasnet_attach(gasnet_handlerentry_t *table, int count, uintptr_t segment_size, uintptr_t min_heap_offset) {
    gex_Segment_t segment;
    (void)min_heap_offset;
    must_be_up("gasnet_attach");
    gex_AM_Entry_t *entries = calloc((size_t)count + 1, sizeof *entries);
    if (!entries) {
        fatal("gasnet_attach: no memory for %d handlers", count);
    }
    for (int i = 0; i < count; i++) {
        entries[i].gex_index = table[i].index;
        entries[i].gex_fnptr = (gex_AM_Fn_t)table[i].fnptr;
        entries[i].gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP;
        entries[i].gex_nargs = ANY_ARGS;
    }
    int answer = gex_EP_RegisterHandlers(&job.ep, entries, (size_t)count);
    for (int i = 0; i < count && answer == GASNET_OK; i++) {
        table[i].index = entries[i].gex_index;
    }
    free(entries);
    return answer == GASNET_OK ? gex_Segment_Attach(&segment, gexl_world, segment_size ? segment_size : GASNET_PAGESIZE)
                               : answer;
}

void gasnet_QueryGexObjects(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, gex_Segment_t *segment) {
    if (client) {
        *client = &job.client;
    }
    if (ep) {
        *ep = &job.ep;
    }
    if (tm) {
        *tm = gexl_world;
    }
    if (segment) {
        *segment = job.ep.segment;
    }
}

int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int count) {
    if (!table || count < 0) {
        return refuse(GASNET_ERR_BAD_ARG, "gasnet_getSegmentInfo: table %p, count %d", (void *)table, count);
    }
    for (int i = 0; i < count && i < (int)job.size; i++) {
        gex_EP_QueryBoundSegmentNB(gexl_world, (gex_Rank_t)i, &table[i].addr, NULL, &table[i].size, 0);
    }
    return GASNET_OK;
}

void gex_HSL_Init(gex_HSL_t *lock) { pthread_mutex_init(&lock->mutex, NULL); }
void gex_HSL_Destroy(gex_HSL_t *lock) { pthread_mutex_destroy(&lock->mutex); }
void gex_HSL_Lock(gex_HSL_t *lock) { pthread_mutex_lock(&lock->mutex); }
void gex_HSL_Unlock(gex_HSL_t *lock) { pthread_mutex_unlock(&lock->mutex); }
int gex_HSL_Trylock(gex_HSL_t *lock) {
    return pthread_mutex_trylock(&lock->mutex) ? GASNET_ERR_NOT_READY : GASNET_OK;
}
