/* Accesses to segments that this process does not map: those of other nodes, and those over a
 * client's own memory, which libllcl reaches through the kernel or by messages to the owner. An
 * address that is in no segment ends the job here. */
#include "internal.h"

#include <string.h>

struct far_place find(gex_TM_t tm, gex_Rank_t rank, const void *address, size_t size) {
    see_thread();
    if (rank >= tm->size) {
        fatal("rank %u of a team of %u", rank, tm->size);
    }
    const struct gexl_place *place = &gexl_places(tm)[rank];
    struct far_place found = {gex_TM_TranslateRankToJobrank(tm, rank), NULL, LLCL_REMOTE_INIT};
    unsigned char *here;
    if (gexl_inside(tm, rank, address, size, &here)) {
        found.here = here;
        return found;
    }
    const struct gexl_far *far = far_of(place);
    uintptr_t all = far ? far->size : place->size, offset = (uintptr_t)address - place->base;
    if (!far || offset > all || size > all - offset) {
        fatal("%zu bytes at %p are not in the segment of rank %u, which has %zu bytes at %p", size, address,
              found.jobrank, (size_t)all, (void *)place->base);
    }
    found.remote = llcl_at(far->remote, offset);
    return found;
}

/* Blocking functions of libllcl are not allowed in a handler, so this function waits itself. If the
 * kernel cannot copy the bytes, the progress thread ends the write. */
static void write_in_handler(llcl_write_params_t *params) {
    uint64_t ended = 0;
    llcl_status_t status;
    params->on_complete = llcl_store_on(&ended);
    while ((status = llcl_try_write_async(job.context, params)) > 0) {
        sched_yield();
    }
    must(status, "a put to a segment that is not mapped here");
    uint64_t seen;
    while (!(seen = __atomic_load_n(&ended, __ATOMIC_ACQUIRE))) {
        sched_yield();
    }
    if (seen & LLCL_WORD_FAILED) {
        fatal("a put to a segment that is not mapped here has failed");
    }
}

void gexl_put(gex_TM_t tm, gex_Rank_t rank, void *destination, const void *source, size_t size) {
    if (!size && rank < tm->size) {
        return;
    }
    struct far_place to = find(tm, rank, destination, size);
    if (to.here) {
        memcpy(to.here, source, size);
        return;
    }
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    params.peer = to.jobrank;
    params.source = llcl_local_address(source);
    params.destination = to.remote;
    params.size = size;
    if (in_handler()) {
        write_in_handler(&params);
    } else {
        must(llcl_write(job.context, &params), "a put to a segment that is not mapped here");
    }
}

void gexl_get(gex_TM_t tm, void *destination, gex_Rank_t rank, const void *source, size_t size) {
    if (!size && rank < tm->size) {
        return;
    }
    struct far_place from = find(tm, rank, source, size);
    if (from.here) {
        memcpy(destination, from.here, size);
        return;
    }
    llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
    params.peer = from.jobrank;
    params.source = from.remote;
    params.destination = llcl_local_address(destination);
    params.size = size;
    must(llcl_read(job.context, &params), "a get from a segment that is not mapped here");
}

void gexl_set(gex_TM_t tm, gex_Rank_t rank, void *destination, int value, size_t size) {
    char bytes[4096];
    struct group *group = group_new(true);
    memset(bytes, value, sizeof bytes);
    for (size_t done = 0, part; done < size; done += part) {
        part = size - done < sizeof bytes ? size - done : sizeof bytes;
        group_put(group, tm, rank, (char *)destination + done, bytes, part, AT_END, 0);
    }
    gex_Event_t event = group_event(group);
    if (event) {
        gexl_event_wait(event);
    }
}
