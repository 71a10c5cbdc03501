/* Vector, indexed and strided accesses: loops of copies if the memory is mapped, otherwise
 * groups of puts and gets, which are under way together. */
#include "internal.h"

#include <string.h>

/* A list of pieces. `vector`: each piece has its length. Otherwise `addresses`: all have `length`
 * bytes. */
struct list {
    const gex_Memvec_t *vector;
    void *const *addresses;
    size_t length;
    size_t count;
    bool remote;
};

static size_t length_at(const struct list *list, size_t i) { return list->vector ? list->vector[i].gex_len : list->length; }

static char *piece_at(const struct list *list, size_t i) {
    return list->vector ? list->vector[i].gex_addr : list->addresses[i];
}

static size_t total(const struct list *list) {
    size_t sum = 0;
    for (size_t i = 0; i < list->count; i++) {
        sum += length_at(list, i);
    }
    return sum;
}

/* The peer completion that this thread has set for its next access; handler 0: none. */
static __thread struct {
    gex_AM_Index_t handler;
    const void *source;
    size_t size;
} completion;

void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source, size_t size, gex_Flags_t flags) {
    (void)flags;
    if (size > GEX_VIS_MAX_PEERCOMPLETION) {
        fatal("gex_VIS_SetPeerCompletionHandler: %zu bytes, at most %zu", size, GEX_VIS_MAX_PEERCOMPLETION);
    }
    completion.handler = handler;
    completion.source = source;
    completion.size = size;
}

static void complete(gex_TM_t tm, gex_Rank_t rank) {
    if (completion.handler) {
        gex_AM_Index_t handler = completion.handler;
        completion.handler = 0;
        am_notify(tm, rank, handler, completion.source, completion.size);
    }
}

/* What the parts of an access share. `group`: NULL if the segment is mapped, since no part begins
 * then. */
struct parts {
    gex_TM_t tm;
    gex_Rank_t rank;
    struct group *group;
    enum gexl_form form;
    enum local local;
};

static struct parts begin(gex_TM_t tm, gex_Rank_t rank, enum gexl_form form, gex_Flags_t flags) {
    struct parts parts = {tm, rank, NULL, form, flags & GEX_FLAG_ENABLE_LEAF_LC ? WHEN_COUNTED : AT_END};
    if (rank < tm->size && far_of(&gexl_places(tm)[rank])) {
        parts.group = form == GEXL_NBI ? nbi_group() : group_new(true);
    }
    return parts;
}

/* Returns the event of the access. A blocking access, or one whose peer is told, ends here. */
static gex_Event_t end(const struct parts *parts) {
    bool waits = parts->form == GEXL_BLOCKING || completion.handler;
    unsigned rounds = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (waits && parts->group && !(group_has_ended(parts->group, PUTS) && group_has_ended(parts->group, GETS))) {
        gexl_pause(&rounds);
    }
    complete(parts->tm, parts->rank);
    return parts->group && parts->form != GEXL_NBI ? group_event(parts->group) : GEX_EVENT_INVALID;
}

static gex_Event_t copy_lists(struct parts parts, const struct list *to, const struct list *from) {
    size_t i = 0, j = 0, in_to = 0, in_from = 0;
    if (total(to) != total(from)) {
        fatal("an access to %zu bytes from %zu bytes", total(to), total(from));
    }
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    while (i < to->count && j < from->count) {
        size_t room = length_at(to, i) - in_to, have = length_at(from, j) - in_from;
        size_t size = room < have ? room : have;
        if (size) {
            char *destination = piece_at(to, i) + in_to, *source = piece_at(from, j) + in_from;
            if (to->remote) {
                group_put(parts.group, parts.tm, parts.rank, destination, source, size, parts.local, 0);
            } else {
                group_get(parts.group, parts.tm, destination, parts.rank, source, size, 0);
            }
        }
        in_to += size;
        in_from += size;
        if (in_to == length_at(to, i)) {
            i++, in_to = 0;
        }
        if (in_from == length_at(from, j)) {
            j++, in_from = 0;
        }
    }
    return end(&parts);
}

gex_Event_t gexl_vector_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, size_t dst_count,
                            gex_Memvec_t const dst[], size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags) {
    return copy_lists(begin(tm, rank, form, flags), &(struct list){dst, NULL, 0, dst_count, true},
                      &(struct list){src, NULL, 0, src_count, false});
}
gex_Event_t gexl_vector_get(enum gexl_form form, gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[],
                            gex_Rank_t rank, size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags) {
    return copy_lists(begin(tm, rank, form, flags), &(struct list){dst, NULL, 0, dst_count, false},
                      &(struct list){src, NULL, 0, src_count, true});
}
gex_Event_t gexl_indexed_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, size_t dst_count, void *const dst[],
                             size_t dst_size, size_t src_count, void *const src[], size_t src_size,
                             gex_Flags_t flags) {
    return copy_lists(begin(tm, rank, form, flags), &(struct list){NULL, dst, dst_size, dst_count, true},
                      &(struct list){NULL, src, src_size, src_count, false});
}
gex_Event_t gexl_indexed_get(enum gexl_form form, gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_size,
                             gex_Rank_t rank, size_t src_count, void *const src[], size_t src_size,
                             gex_Flags_t flags) {
    return copy_lists(begin(tm, rank, form, flags), &(struct list){NULL, dst, dst_size, dst_count, false},
                      &(struct list){NULL, src, src_size, src_count, true});
}

#define LEVELS 64 /* docs/gasnet.md names this limit */
enum carrier { COPY, PUT, GET };
/* A strided access. PUT and GET begin parts; COPY is for mapped memory. */
struct grid {
    const struct parts *parts;
    enum carrier carrier;
    char *to;
    const char *from;
    const ptrdiff_t *to_strides, *from_strides;
    size_t element;
    const size_t *count;
    size_t levels;
};

static void copy_element(const struct grid *g, char *to, const char *from) {
    const struct parts *parts = g->parts;
    switch (g->carrier) {
    case COPY: memcpy(to, from, g->element); break;
    case PUT: group_put(parts->group, parts->tm, parts->rank, to, from, g->element, parts->local, 0); break;
    case GET: group_get(parts->group, parts->tm, to, parts->rank, from, g->element, 0); break;
    }
}

/* Copies a row of level 0 at a time. at[level] counts the rows of the outer levels; a count that is
 * full is set back and carries into the next level. */
static void copy_grid(const struct grid *g) {
    size_t at[LEVELS] = {0}, row = g->levels ? g->count[0] : 1;
    ptrdiff_t to_step = g->levels ? g->to_strides[0] : 0, from_step = g->levels ? g->from_strides[0] : 0;
    char *to = g->to;
    const char *from = g->from;
    for (;;) {
        for (size_t i = 0; i < row; i++) {
            copy_element(g, to + (ptrdiff_t)i * to_step, from + (ptrdiff_t)i * from_step);
        }
        size_t level = 1;
        while (level < g->levels && ++at[level] == g->count[level]) {
            at[level] = 0;
            to -= (ptrdiff_t)(g->count[level] - 1) * g->to_strides[level];
            from -= (ptrdiff_t)(g->count[level] - 1) * g->from_strides[level];
            level++;
        }
        if (level >= g->levels) {
            break;
        }
        to += g->to_strides[level];
        from += g->from_strides[level];
    }
}

/* The address of the lowest byte of a strided access, and in `span` the bytes from there to its
 * end. Ends the job if the access is larger than memory can be. */
static char *extent(char *start, const ptrdiff_t *strides, const size_t *count, size_t levels, size_t element,
                    size_t *span) {
    ptrdiff_t low = 0, high, reach, bytes;
    bool too_large = __builtin_add_overflow(element, 0, &high);
    for (size_t i = 0; i < levels; i++) {
        too_large |= __builtin_mul_overflow(count[i] - 1, strides[i], &reach);
        too_large |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    too_large |= __builtin_sub_overflow(high, low, &bytes);
    if (too_large) {
        fatal("a strided access to %p of more than %td bytes", (void *)start, PTRDIFF_MAX);
    }
    *span = (size_t)bytes;
    return start + low;
}

/* The other arguments of an access without elements count for nothing. */
static bool is_empty(size_t element, const size_t *count, size_t levels) {
    bool empty = element == 0;
    for (size_t i = 0; i < levels && !empty; i++) {
        empty = count[i] == 0;
    }
    if (!empty && levels > LEVELS) {
        fatal("an access with %zu levels of strides, at most %d", levels, LEVELS);
    }
    return empty;
}

/* The address of `start` in this process, or NULL if the segment is not mapped. Ends the job unless
 * the whole extent is in the segment. */
static char *reach(gex_TM_t tm, gex_Rank_t rank, char *start, const ptrdiff_t *strides, const size_t *count,
                   size_t levels, size_t element) {
    size_t span;
    char *low = extent(start, strides, count, levels, element, &span);
    char *here = find(tm, rank, low, span).here;
    return here ? here + (start - low) : NULL;
}

gex_Event_t gexl_strided_put(enum gexl_form form, gex_TM_t tm, gex_Rank_t rank, void *dst,
                             const ptrdiff_t dst_strides[], void *src, const ptrdiff_t src_strides[], size_t element,
                             const size_t count[], size_t levels, gex_Flags_t flags) {
    struct parts parts = {.tm = tm, .rank = rank, .form = form};
    if (!is_empty(element, count, levels)) {
        parts = begin(tm, rank, form, flags);
        char *to = reach(tm, rank, dst, dst_strides, count, levels, element);
        copy_grid(&(struct grid){&parts, to ? COPY : PUT, to ? to : dst, src, dst_strides, src_strides, element, count,
                                 levels});
    }
    return end(&parts);
}

gex_Event_t gexl_strided_get(enum gexl_form form, gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[],
                             gex_Rank_t rank, void *src, const ptrdiff_t src_strides[], size_t element,
                             const size_t count[], size_t levels, gex_Flags_t flags) {
    struct parts parts = {.tm = tm, .rank = rank, .form = form};
    if (!is_empty(element, count, levels)) {
        parts = begin(tm, rank, form, flags);
        const char *from = reach(tm, rank, src, src_strides, count, levels, element);
        copy_grid(&(struct grid){&parts, from ? COPY : GET, dst, from ? from : src, dst_strides, src_strides, element,
                                 count, levels});
    }
    return end(&parts);
}
