/* Broken if this fails: a list that another thread changes during the call leads a read or a write
 * out of its region, because an entry was checked once and then read again.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"
#include <pthread.h>

/* ThreadSanitizer reports a plain read of the list in the first calls, and a call takes it long. */
#ifdef __SANITIZE_THREAD__
enum { CALLS = 100 };
#else
enum { CALLS = 1000 };
#endif
enum { SPANS = 1024, BYTES = 16 * SPANS, TURN = 500 };

struct changer {
    llcl_local_span_t *ours;
    llcl_remote_span_t *theirs;
    uint64_t stop, turns;
};

/* Both values stay for about as long as a call takes, so that it meets the change at any of its
 * steps. */
static void flip(uint64_t *field, uint64_t right, uint64_t wrong)
{
    int i;
    for (i = 0; i < 2 * TURN; i++)
        __atomic_store_n(field, i < TURN ? wrong : right, __ATOMIC_RELAXED);
}

/* One span after the other has a wrong offset, size or key for a moment. The wrong key is none that
 * a later region gets. */
static void *change(void *data)
{
    struct changer *it = data;
    unsigned i;
    for (i = SPANS - 1; !word_get(&it->stop); i = (i + 7) % SPANS) {
        flip(&it->theirs[i].place.offset, 16 * i, (uint64_t)1 << 44);
        flip(&it->ours[i].place.offset, 16 * i, (uint64_t)1 << 44);
        flip((uint64_t *)(void *)&it->theirs[i].size, 8, (uint64_t)1 << 44);
        flip((uint64_t *)(void *)&it->ours[i].size, 8, (uint64_t)1 << 44);
        flip(&it->theirs[i].place.key, it->theirs[0].place.key, it->theirs[0].place.key + ((uint64_t)1 << 60));
        word_add(&it->turns, 1);
    }
    return NULL;
}

static void calls(llcl_context_t *context, const struct shared *target, const struct shared *mine)
{
    static __thread llcl_local_span_t ours[SPANS];
    static __thread llcl_remote_span_t theirs[SPANS];
    llcl_vector_params_t list = LLCL_VECTOR_PARAMS_INIT;
    struct changer changer = {ours, theirs, 0, 0};
    pthread_t thread;
    unsigned i;
    for (i = 0; i < SPANS; i++) {
        ours[i].place = llcl_region_local(mine->region, 16 * i);
        theirs[i].place = remote_at(target, (llcl_rank(context) + 1) % llcl_size(context), 16 * i);
        ours[i].size = theirs[i].size = 8;
    }
    list.peer = (llcl_rank(context) + 1) % llcl_size(context);
    list.locals = ours;
    list.remotes = theirs;
    list.local_count = list.remote_count = SPANS;
    CHECK(pthread_create(&thread, NULL, change, &changer) == 0);
    AWAIT(&changer.turns, 1);
    for (i = 0; i < CALLS; i++) {
        llcl_status_t status = i % 2 ? llcl_readv(context, &list) : llcl_writev(context, &list);
        CHECK(status == LLCL_OK || status == LLCL_ERR_RANGE || status == LLCL_ERR_KEY || status == LLCL_ERR_INVALID);
    }
    word_set(&changer.stop, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(llcl_writev(context, &list));
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        share(context, kind, BYTES, &target);
        region_make(context, ALLOCATED, BYTES, &mine);
        fence(context);
        calls(context, &target, &mine);
        fence(context);
        share_end(context, &target);
        region_drop(&mine);
    }
}

TEST_MAIN(run)
