/* Broken if this fails: an atomic operation on some type gives another value than the same
 * operation in plain C, fetches something else than the old value, or touches the bytes beside the
 * target.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 * timeout: 80
 */
#include "atomic_reference.h"

struct cell {
    unsigned char before[8];
    unsigned char word[8];
    unsigned char after[8];
};

static uint64_t cell_get(const struct cell *cell, size_t size)
{
    uint64_t all;
    memcpy(&all, cell->word, 8);
    return low_bits(all, size);
}

static void cell_set(struct cell *cell, uint64_t value)
{
    memset(cell, 0x5a, sizeof *cell);
    memcpy(cell->word, &value, 8);
}

static void check_result(const struct cell *result, uint64_t old, size_t size)
{
    CHECK_EQUAL(cell_get(result, size), old);
    CHECK(bytes_are(result->before, 8, 0x5a) && bytes_are(result->after, 8, 0x5a));
    CHECK(bytes_are(result->word + size, 8 - size, 0));
}

/* My cell in the peer's region: written and read back there through the library. */
static void one(llcl_context_t *context, llcl_atomic_params_t *atomic, llcl_remote_t cell_remote,
                struct shared *copy, uint64_t old, uint64_t compare)
{
    size_t size = type_size(atomic->type);
    struct cell *image = (struct cell *)(void *)copy->bytes;
    struct cell result;
    llcl_write_params_t write = {0};
    llcl_read_params_t read = {0};
    int fetch;
    for (fetch = 0; fetch < 2; fetch++) {
        uint64_t expected = reference(atomic->op, atomic->type, old, atomic->operand, compare);
        if (atomic->op == LLCL_OP_LOAD && !fetch)
            continue;
        cell_set(image, old);
        cell_set(&result, 0);
        write.peer = read.peer = atomic->peer;
        write.source = read.destination = llcl_region_local(copy->region, 0);
        write.destination = read.source = cell_remote;
        write.size = read.size = sizeof *image;
        CHECK_OK(llcl_write(context, &write));
        atomic->compare = compare;
        atomic->result = fetch ? result.word : NULL;
        CHECK_OK(llcl_atomic(context, atomic));
        memset(image, 0, sizeof *image);
        CHECK_OK(llcl_read(context, &read));
        if (cell_get(image, size) != expected)
            fprintf(stderr, "op %u type %u old 0x%llx operand 0x%llx compare 0x%llx\n", atomic->op,
                    atomic->type, (unsigned long long)old, (unsigned long long)atomic->operand,
                    (unsigned long long)compare);
        CHECK_EQUAL(cell_get(image, size), expected);
        CHECK(bytes_are(image->before, 8, 0x5a) && bytes_are(image->after, 8, 0x5a));
        CHECK(memcmp(image->word + size, (unsigned char *)&old + size, 8 - size) == 0);
        if (fetch)
            check_result(&result, old, size);
    }
}

/* Each value meets every other one, or only one of them: another one if operations are deferred. */
static void table(llcl_context_t *context, const struct shared *target, struct shared *copy,
                  uint32_t peer, uint32_t flags, int every_pair)
{
    llcl_atomic_params_t atomic = {0};
    llcl_remote_t cell = remote_at(target, peer, llcl_rank(context) * sizeof(struct cell));
    uint64_t values[16];
    size_t t, o, a, b, count;
    atomic.peer = peer;
    atomic.flags = flags;
    atomic.target = cell;
    atomic.target.offset += 8;
    for (t = 0; t < TYPES; t++) {
        atomic.type = all_types[t];
        count = edge_values(atomic.type, values);
        for (o = 0; o < OPS; o++) {
            atomic.op = all_ops[o];
            if (!is_offered(atomic.op, atomic.type))
                continue;
            for (a = 0; a < count; a++) {
                for (b = 0; b < count; b++) {
                    if (!every_pair && b != (flags ? 3 * a + 2 : a + 1) % count)
                        continue;
                    atomic.operand = values[b];
                    one(context, &atomic, cell, copy, values[a], values[a]);
                    if (atomic.op == LLCL_OP_COMPARE_SWAP)
                        one(context, &atomic, cell, copy, values[a], values[b]);
                }
            }
        }
    }
}

static void run(llcl_context_t *context)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target, copy;
        share(context, kind, 4096, &target);
        region_make(context, REGISTERED, 64, &copy);
        table(context, &target, &copy, peer, 0, kind == ALLOCATED && !test_in_threads());
        table(context, &target, &copy, peer, LLCL_FLAG_DEFER, 0);
        share_end(context, &target);
        region_drop(&copy);
    }
}

TEST_MAIN(run)
