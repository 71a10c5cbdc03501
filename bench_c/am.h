/* Shared by the benchmarks of active messages: posting, copies to compare with, and the counters of
 * llcl_stats_get. */
#ifndef LLCL_BENCH_AM_H
#define LLCL_BENCH_AM_H

#include "world.h"

#define AM_HEADER_UP_TO 64  /* up to so many bytes travel as the header, more as the payload */
#define AM_COPIES_FROM 4096 /* where am_copy's destinations begin in the peer's mapped region */

/* Collective. One handler at a time runs in each rank, so handlers may count with plain stores. */
void am_open(bench_world_t *world, bench_options_t *options, size_t bytes);
void am_register(const bench_world_t *world, uint32_t id, llcl_am_handler_fn handler, void *data);
void am_fence(const bench_world_t *world); /* collective; sleeps */

llcl_am_params_t am_message(uint32_t peer, uint32_t id, const void *bytes, size_t size);

static inline llcl_am_view_t am_view(const llcl_am_t *message)
{
    llcl_am_view_t view;
    bench_check(llcl_am_view(message, &view), "llcl_am_view");
    return view;
}

/* Tries first. Without credit it waits inside the library. */
static inline __attribute__((always_inline)) void am_post(llcl_context_t *context, const llcl_am_params_t *params)
{
    llcl_status_t status = llcl_try_am_async(context, params);
    if (status > 0)
        status = llcl_am_async(context, params);
    if (status < 0)
        bench_check(status, "llcl_am_async");
}

/* The time of one copy without the library, in ns, from this rank's memory to the peer's mapped
 * region. `places`: the number of destinations, used in turn. */
double am_copy(const bench_world_t *world, size_t size, size_t places, unsigned rounds);

/* For handlers: counts. Threads of this rank wait for the count by am_wait. */
static inline void am_count(uint64_t *word)
{
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE); /* pairs with llcl_wait_word */
}
void am_wait(const bench_world_t *world, const uint64_t *word, uint64_t count);

/* Collective: the counters of all ranks, by rank. The caller frees the array. */
llcl_stats_t *am_stats(const bench_world_t *world);
/* Rank 0 prints two lines under the table: the growth of all ranks' counters between `before` and
 * `after`. */
void am_note_stats(const bench_world_t *world, const char *what, const llcl_stats_t *before, const llcl_stats_t *after);

void am_emit(const bench_world_t *world, const char *what, const char *unit, int threads, size_t size, const char *limit_name,
             const char *target, const bench_series_t *series);

#endif
