/* Shared by many tests: regions whose addresses every rank knows, byte patterns, callbacks that
 * count. */
#ifndef SHARED_H
#define SHARED_H
#include "test.h"

enum memory_kind { ALLOCATED, REGISTERED, MEMORY_KINDS };
/* Added to a kind: the region has the flag LLCL_REGION_DEVICE_ATOMICS. */
#define DEVICE 4

static inline const char *memory_name(int kind)
{
    return kind == ALLOCATED ? "allocated" : "registered";
}

/* A region of this rank. remote[r] is the address of rank r's region. */
struct shared {
    llcl_region_t *region;
    unsigned char *bytes;
    uint64_t *words;
    size_t size;
    int kind;
    llcl_remote_t *remote;
};

static inline void fence(llcl_context_t *context)
{
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

static inline void region_make(llcl_context_t *context, int kind, size_t size, struct shared *out)
{
    uint32_t flags = kind & DEVICE ? LLCL_REGION_DEVICE_ATOMICS : 0;
    out->kind = kind & ~DEVICE;
    out->size = size;
    out->remote = NULL;
    if (out->kind == ALLOCATED) {
        CHECK_OK(llcl_region_allocate(context, size, flags, &out->region));
        out->bytes = llcl_region_address(out->region);
        memset(out->bytes, 0, size);
    } else {
        void *memory = NULL;
        CHECK(posix_memalign(&memory, 64, size) == 0);
        memset(memory, 0, size);
        CHECK_OK(llcl_region_register(context, memory, size, flags, &out->region));
        CHECK(llcl_region_address(out->region) == memory);
        out->bytes = memory;
    }
    CHECK(out->bytes != NULL);
    out->words = (uint64_t *)(void *)out->bytes;
}

static inline void region_drop(struct shared *shared)
{
    llcl_status_t status;
    while ((status = llcl_region_free(shared->region)) == LLCL_RETRY_BUSY)
        sched_yield();
    CHECK_OK(status);
    if (shared->kind == REGISTERED)
        free(shared->bytes);
    free(shared->remote);
}

/* Collective. */
static inline void share(llcl_context_t *context, int kind, size_t size, struct shared *out)
{
    llcl_remote_t mine;
    region_make(context, kind, size, out);
    mine = llcl_region_remote(out->region, 0);
    out->remote = calloc(llcl_size(context), sizeof mine);
    CHECK(out->remote != NULL);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, out->remote));
}

/* Collective: frees the region when no rank uses it any more. */
static inline void share_end(llcl_context_t *context, struct shared *shared)
{
    fence(context);
    region_drop(shared);
}

/* Whether this rank maps the peer's allocated memory: the peer is on its node. */
static inline int is_near(llcl_context_t *context, uint32_t peer)
{
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    CHECK_OK(llcl_query_peer(context, peer, &info));
    return info.transport != LLCL_TRANSPORT_WIRE;
}

static inline llcl_remote_t remote_at(const struct shared *shared, uint32_t rank, uint64_t offset)
{
    llcl_remote_t address = shared->remote[rank];
    address.offset += offset;
    return address;
}

/* A sanitizer takes long to check each byte of a loop. So the loops work on a piece of their own,
 * unchecked. memcpy and memcmp access the memory under test, and it checks all of their bytes. */
enum { PATTERN_PIECE = 512 };
#define UNCHECKED __attribute__((no_sanitize_thread, no_sanitize_address))

static inline size_t piece_size(size_t at, size_t size)
{
    return size - at < PATTERN_PIECE ? size - at : PATTERN_PIECE;
}

UNCHECKED static inline unsigned char pattern_byte(uint32_t seed, size_t i)
{
    return (unsigned char)(seed * 131u + i * 7u + (i >> 8) * 13u + (i >> 16) + 1u);
}

UNCHECKED static inline void pattern_piece(unsigned char *piece, size_t at, size_t size,
                                           uint32_t seed)
{
    size_t i;
    for (i = 0; i < size; i++)
        piece[i] = pattern_byte(seed, at + i);
}

static inline void pattern_fill(unsigned char *bytes, size_t size, uint32_t seed)
{
    unsigned char piece[PATTERN_PIECE];
    size_t at;
    for (at = 0; at < size; at += PATTERN_PIECE) {
        pattern_piece(piece, at, piece_size(at, size), seed);
        memcpy(bytes + at, piece, piece_size(at, size));
    }
}

static inline int pattern_holds(const unsigned char *bytes, size_t size, uint32_t seed)
{
    unsigned char piece[PATTERN_PIECE];
    size_t at, i;
    for (at = 0; at < size; at += PATTERN_PIECE) {
        pattern_piece(piece, at, piece_size(at, size), seed);
        if (memcmp(bytes + at, piece, piece_size(at, size)) == 0)
            continue;
        for (i = at; bytes[i] == piece[i - at] && i + 1 < at + piece_size(at, size); i++)
            ;
        fprintf(stderr, "byte %zu of %zu is 0x%02x, expected 0x%02x\n", i, size,
                (unsigned)bytes[i], (unsigned)piece[i - at]);
        return 0;
    }
    return 1;
}

static inline int bytes_are(const unsigned char *bytes, size_t size, unsigned char value)
{
    unsigned char piece[PATTERN_PIECE];
    size_t at;
    memset(piece, value, sizeof piece);
    for (at = 0; at < size; at += PATTERN_PIECE)
        if (memcmp(bytes + at, piece, piece_size(at, size)) != 0)
            return 0;
    return 1;
}

/* Sizes around all possible thresholds. */
static const size_t test_sizes[] = {0,  1,  2,    3,    7,    8,     9,     15,    16,     17,
                                    63, 64, 65,   511,  512,  4095,  4096,  4097,  65535,  65536,
                                    65537, 1048579};
#define TEST_SIZES (sizeof test_sizes / sizeof test_sizes[0])
#define TEST_LARGEST ((size_t)1048579)

/* Counts callbacks. Many operations and threads may use one tally. */
struct tally {
    uint64_t fired;
    uint64_t failed;
    int64_t last; /* the last status that was not LLCL_OK */
};

static inline void tally_fire(void *data, llcl_status_t status)
{
    struct tally *tally = data;
    if (status != LLCL_OK) {
        __atomic_store_n(&tally->last, status, __ATOMIC_RELAXED);
        word_add(&tally->failed, 1);
    }
    word_add(&tally->fired, 1);
}

static inline llcl_completion_t count_in(struct tally *tally)
{
    return llcl_callback(tally_fire, tally);
}

/* Calls `function(context, status)` as the callback of an operation, and waits until it has
 * returned. */
static inline void in_callback_of(llcl_context_t *context, void (*function)(void *, llcl_status_t))
{
    uint64_t target = 0;
    llcl_region_t *own = NULL;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    CHECK_OK(llcl_region_register(context, &target, sizeof target, 0, &own));
    add.peer = llcl_rank(context);
    add.target = llcl_region_remote(own, 0);
    add.on_complete = llcl_callback(function, context);
    POST(llcl_try_fetch_add_async(context, &add));
    CHECK_OK(llcl_flush_all(context));
    CHECK_OK(llcl_region_free(own));
}

/* A random generator. A test prints its seed, so that the same random numbers can be used again. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
