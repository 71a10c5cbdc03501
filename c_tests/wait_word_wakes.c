/* Broken if this fails: a thread that sleeps in llcl_wait_word is not woken, within 20 ms, by some
 * kind of operation that reaches its word: every write (also of many pieces, and the bytes of a
 * write with a signal), signal and atomic of a peer, and its own completions, and llcl_wake after
 * a read. The sleeper sleeps for 110 ms first: it is in the kernel then, and looks by itself 41 ms
 * later (transport::sleepers), which is too late.
 * ranks: 2
 * cma: on off
 * threads: 2
 * timeout: 60
 */
#include "wild.h"

#define TRIES 4 /* a busy machine may be late; a lost wake-up is late every time */

enum {
    WAKE_SWAP = WILD_OPERATIONS,
    WAKE_STORE,
    WAKE_MAX,
    WAKE_F64,
    WAKE_WRITE_LARGE,
    WAKE_SIGNAL_DATA,
    WAKE_BOX,
    WAKE_LIST,
    WAKES
};

/* Writes two pieces of 8 bytes, of which one is the word. */
static void wake_by_pieces(llcl_context_t *context, const struct wild *wild, int how)
{
    if (how == WAKE_BOX) {
        llcl_strided_params_t box = {0};
        box.peer = wild->peer;
        box.local = wild->local;
        box.remote = wild->remote;
        box.size = 8;
        box.dimensions = 1;
        box.extents[0] = 2;
        box.local_strides[0] = 8;
        box.remote_strides[0] = 64;
        CHECK_OK(llcl_write_strided(context, &box));
    } else {
        llcl_vector_params_t list = {0};
        llcl_local_span_t locals[2];
        llcl_remote_span_t remotes[2];
        locals[0].place = locals[1].place = wild->local;
        remotes[0].place = llcl_at(wild->remote, 64);
        remotes[1].place = wild->remote;
        locals[0].size = locals[1].size = remotes[0].size = remotes[1].size = 8;
        list.peer = wild->peer;
        list.locals = locals;
        list.remotes = remotes;
        list.local_count = list.remote_count = 2;
        CHECK_OK(llcl_writev(context, &list));
    }
}

static void wake(llcl_context_t *context, const struct wild *base, int how)
{
    struct wild wild = *base;
    llcl_atomic_params_t atomic = {0};
    atomic.peer = wild.peer;
    atomic.target = wild.remote;
    atomic.type = LLCL_TYPE_U64;
    atomic.operand = 1;
    wild.tier = TIER_BLOCKING;
    switch (how) {
    case WAKE_SWAP: atomic.op = LLCL_OP_SWAP; break;
    case WAKE_STORE: atomic.op = LLCL_OP_STORE; break;
    case WAKE_MAX: atomic.op = LLCL_OP_MAX; break;
    case WAKE_F64: {
        double one = 1.0;
        atomic.op = LLCL_OP_ADD;
        atomic.type = LLCL_TYPE_F64;
        memcpy(&atomic.operand, &one, 8);
        break;
    }
    case WAKE_WRITE_LARGE: {
        llcl_write_params_t write = {0};
        write.peer = wild.peer;
        write.source = wild.local;
        write.destination = wild.remote;
        write.size = 4096;
        CHECK_OK(llcl_write(context, &write));
        return;
    }
    case WAKE_BOX:
    case WAKE_LIST: wake_by_pieces(context, &wild, how); return;
    default:
        wild.operation = how == WAKE_SIGNAL_DATA ? WILD_SIGNAL : how;
        CHECK_OK(wild_post(context, &wild));
        return;
    }
    CHECK_OK(llcl_atomic(context, &atomic));
}

static int64_t one_try(llcl_context_t *context, struct shared *target, const struct wild *wild, int how)
{
    int64_t mine = 0, both[2];
    word_set(target->words, 0);
    fence(context);
    if (llcl_rank(context) == 0) {
        sleep_ms(110);
        mine = now_ns();
        wake(context, wild, how);
    } else {
        CHECK_OK(llcl_wait_word(context, target->words, 1, TEST_PATIENCE_NS));
        mine = now_ns();
    }
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, both));
    return both[1] - both[0];
}

static void by_peer(llcl_context_t *context, int kind)
{
    struct shared target, mine, data;
    struct wild wild = {0};
    int how, i;
    share(context, kind, 8192, &target);
    share(context, ALLOCATED, 4096, &data);
    region_make(context, ALLOCATED, 4096, &mine);
    mine.words[0] = 1;
    mine.words[1] = 1;
    wild.peer = 1;
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = &mine.words[1];
    for (how = 0; how < WAKES; how++) {
        int64_t best = INT64_MAX;
        if (how == WILD_READ)
            continue;
        /* A long write moves its words in no particular pieces: fine for waking, a race to a
         * checker. */
        if (how == WAKE_WRITE_LARGE && test_in_threads())
            continue;
        wild.remote = how == WILD_SIGNAL ? remote_at(&data, 1, 0) : target.remote[1];
        wild.signal = how == WAKE_SIGNAL_DATA ? remote_at(&data, 1, 0) : target.remote[1];
        for (i = 0; i < TRIES && best >= 20000000; i++) {
            int64_t took = one_try(context, &target, &wild, how);
            best = took < best ? took : best;
            mine.words[1] = 1;
        }
        if (best >= 20000000)
            fprintf(stderr, "%s memory, way %d: woken after %lld us\n", memory_name(kind), how,
                    (long long)best / 1000);
        CHECK(best < 20000000);
    }
    share_end(context, &target);
    share_end(context, &data);
    region_drop(&mine);
}

struct sleeper {
    llcl_context_t *context;
    uint64_t *word;
    int64_t woken;
};

static void *sleep_on(void *data)
{
    struct sleeper *sleeper = data;
    CHECK_OK(llcl_wait_word(sleeper->context, sleeper->word, 1, TEST_PATIENCE_NS));
    sleeper->woken = now_ns();
    return NULL;
}

/* A thread sleeps on the word of a completion, or on where a read of another thread brings data, of
 * which that one tells it. */
static void by_own(llcl_context_t *context, int kind, int is_read)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    struct shared target, mine;
    int64_t best = INT64_MAX;
    int i;
    share(context, kind, 64, &target);
    region_make(context, kind, 64, &mine);
    word_set(target.words, 1);
    fence(context);
    for (i = 0; i < TRIES; i++) {
        struct sleeper sleeper;
        uint64_t done = 0;
        pthread_t thread;
        int64_t begin;
        llcl_read_params_t read = {0};
        word_set(mine.words, 0);
        sleeper.context = context;
        sleeper.word = is_read ? mine.words : &done;
        CHECK(pthread_create(&thread, NULL, sleep_on, &sleeper) == 0);
        sleep_ms(110);
        read.peer = peer;
        read.flags = i % 2 ? LLCL_FLAG_DEFER : 0;
        read.source = target.remote[peer];
        read.destination = llcl_region_local(mine.region, 0);
        read.size = 8;
        if (!is_read)
            read.on_complete = i < 2 ? llcl_add_on(&done) : llcl_store_on(&done);
        begin = now_ns();
        POST(llcl_try_read_async(context, &read));
        if (is_read) {
            CHECK_OK(llcl_flush_all(context));
            CHECK_OK(llcl_wake(context, llcl_rank(context)));
        }
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_OK(llcl_flush_all(context));
        best = sleeper.woken - begin < best ? sleeper.woken - begin : best;
    }
    CHECK(best < 20000000);
    share_end(context, &target);
    region_drop(&mine);
}

static void run(llcl_context_t *context)
{
    const char *copies = getenv("LLCL_CMA");
    /* Allocated memory is reached in one way, whether the kernel copies or not. */
    if (!copies || strcmp(copies, "off") != 0) {
        by_peer(context, ALLOCATED);
        by_own(context, ALLOCATED, 0);
        by_own(context, ALLOCATED, 1);
    }
    by_peer(context, REGISTERED);
    by_own(context, REGISTERED, 0);
    /* The kernel's copy into a word that is waited for is a race to a checker, too. */
    if (!test_in_threads())
        by_own(context, REGISTERED, 1);
}

TEST_MAIN(run)
