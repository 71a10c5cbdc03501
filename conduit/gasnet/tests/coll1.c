/* Do GASNet-1's collectives give each rank the right blocks, also if a block takes several rounds,
 * with many operations under way, in a team of some of the ranks, and in place? Does ALLSYNC let a
 * rank write a late rank's input before its own call, and read its result behind that? */
#include "t.h"

#define MANY 6
#define LONG ((3 << 20) + 13)
#define MY (GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC)
#define NO (GASNET_COLL_LOCAL | GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC)
#define ALL (GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC)

static unsigned char mark(unsigned from, unsigned to, size_t at) { return (unsigned char)(1 + from * 31 + to * 7 + at / 3); }
static void fill(unsigned char *block, size_t size, unsigned from, unsigned to) {
    for (size_t i = 0; i < size; i++) {
        block[i] = mark(from, to, i);
    }
}
static void is_from(const unsigned char *block, size_t size, unsigned from, unsigned to) {
    for (size_t i = 0; i < size; i++) {
        if (block[i] != mark(from, to, i)) {
            EQUAL(i, size); /* the first wrong byte */
        }
    }
}

static void each(gasnet_team_handle_t team, gasnet_image_t root, size_t size, int flags) {
    unsigned rank = gex_TM_QueryRank(team), ranks = gex_TM_QuerySize(team);
    unsigned char *one = calloc(1, size + 1), *src = calloc(ranks, size + 1), *dst = calloc(ranks, size + 1);
    CHECK(one && src && dst);
    for (unsigned r = 0; r < ranks; r++) {
        fill(src + r * size, size, rank, r);
    }
    int is_root = rank == root;
    gasnet_coll_broadcast(team, is_root ? src : dst, root, is_root ? src : NULL, size, flags);
    is_from(is_root ? src : dst, size, root, 0);
    gasnet_coll_scatter(team, one, root, is_root ? src : NULL, size, flags);
    is_from(one, size, root, rank);
    fill(one, size, rank, 0);
    gasnet_coll_gather(team, root, is_root ? dst : NULL, one, size, flags);
    for (unsigned r = 0; is_root && r < ranks; r++) {
        is_from(dst + r * size, size, r, 0);
    }
    memset(dst, 0, ranks * size);
    fill(dst + rank * size, size, rank, 0); /* in place */
    gasnet_coll_gather_all(team, dst, dst + rank * size, size, flags);
    for (unsigned r = 0; r < ranks; r++) {
        is_from(dst + r * size, size, r, 0);
    }
    gasnet_coll_exchange(team, dst, src, size, flags);
    for (unsigned r = 0; r < ranks; r++) {
        is_from(dst + r * size, size, r, rank);
    }
    free(one);
    free(src);
    free(dst);
}

/* `flags` differ from one operation to the next. */
static void many_at_once(void) {
    static const int kinds[] = {MY, ALL, NO, MY, ALL, ALL};
    uint32_t sources[MANY][16], results[MANY][16], values[MANY];
    gasnet_coll_handle_t handles[2 * MANY];
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned r = 0; r < all; r++) {
            sources[i][r] = 1000 * me + 10 * r + i;
        }
        values[i] = me == i % all ? 77 + i : 0;
        handles[2 * i] = gasnet_coll_exchange_nb(GASNET_TEAM_ALL, results[i], sources[i], sizeof(uint32_t), kinds[i]);
        handles[2 * i + 1] = gasnet_coll_broadcast_nb(GASNET_TEAM_ALL, &values[i], i % all, &values[i],
                                                      sizeof(uint32_t), kinds[MANY - 1 - i]);
    }
    gasnet_coll_wait_sync_all(handles, 2 * MANY);
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned r = 0; r < all; r++) {
            EQUAL(results[i][r], 1000 * r + 10 * me + i);
        }
        EQUAL(values[i], 77 + i);
    }
}

/* Rank 0 writes its neighbour's input late, and has its own result late. */
static void all_sync(unsigned step) {
    unsigned next = (me + 1) % all;
    size_t result = 64, input = 0;
    uint32_t value = 100 * step + next, got[16];
    barrier();
    if (!me) {
        usleep(20000);
    }
    gex_RMA_PutBlocking(tm, next, base_of(next) + input, &value, sizeof value, 0);
    gasnet_coll_handle_t handle = gasnet_coll_gather_all_nb(GASNET_TEAM_ALL, base_of(me) + result,
                                                            base_of(me) + input, sizeof value, ALL);
    if (!me) {
        usleep(20000);
    }
    gasnet_coll_wait_sync(handle);
    gex_RMA_GetBlocking(tm, got, next, base_of(next) + result, all * sizeof value, 0);
    for (unsigned r = 0; r < all; r++) {
        EQUAL(got[r], 100 * step + r);
    }
    /* Without data this is a barrier. */
    gasnet_coll_broadcast(GASNET_TEAM_ALL, NULL, 0, NULL, 0, ALL);
}

int main(void) {
    begin(NULL, 0);
    CHECK(GASNET_TEAM_ALL == tm);
    for (gasnet_image_t root = 0; root < all; root++) {
        each(tm, root, 5, MY);
        each(tm, root, 4096, NO);
        each(tm, root, 1, ALL);
    }
    each(tm, all - 1, LONG, MY);
    many_at_once();
    for (unsigned step = 1; step < 4; step++) {
        all_sync(step);
    }
    gasnet_coll_barrier_notify(GASNET_TEAM_ALL, 5, 0);
    EQUAL(gasnet_coll_barrier_wait(GASNET_TEAM_ALL, 5, 0), GASNET_OK);
    int id = 0;
    CHECK(gasnet_coll_barrier_result(GASNET_TEAM_ALL, &id) == 0 && id == 5);
    EQUAL(gasnet_coll_barrier(GASNET_TEAM_ALL, (int)me, 0), all == 1 ? GASNET_OK : GASNET_ERR_BARRIER_MISMATCH);
    gex_TM_t half;
    gex_TM_Split(&half, tm, me % 2, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    each(half, 0, 100, ALL);
    CHECK(gasnet_coll_gather_nb(half, 0, NULL, NULL, 0, MY) == GASNET_COLL_INVALID_HANDLE);
    end();
}
