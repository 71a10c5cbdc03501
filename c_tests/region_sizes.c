/* Broken if this fails: regions of some size, alignment or kind of memory (heap, stack, static)
 * cannot be made, report another address or size, or are not usable to their last byte from a peer.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

static unsigned char static_memory[64][257];

/* Writes the first and the last byte of the peer's region and reads them back. */
static void use(llcl_context_t *context, struct shared *shared)
{
    uint32_t peer = (llcl_rank(context) + 1) % llcl_size(context);
    /* With one or two ranks the peer that I write to is the one that writes to me. */
    unsigned char mine = (unsigned char)(0x40 + llcl_rank(context));
    unsigned char from = (unsigned char)(0x40 + peer);
    llcl_write_value_params_t value = {0};
    value.peer = peer;
    value.value = mine;
    value.size = 1;
    value.destination = remote_at(shared, peer, 0);
    CHECK_OK(llcl_write_value(context, &value));
    value.destination = remote_at(shared, peer, shared->size - 1);
    CHECK_OK(llcl_write_value(context, &value));
    value.destination = remote_at(shared, peer, shared->size);
    CHECK_STATUS(llcl_write_value(context, &value), LLCL_ERR_RANGE);
    fence(context);
    CHECK_EQUAL(shared->bytes[0], from);
    CHECK_EQUAL(shared->bytes[shared->size - 1], from);
    fence(context);
}

static void exchanged(llcl_context_t *context, void *memory, size_t size)
{
    struct shared shared = {0};
    llcl_remote_t mine;
    CHECK_OK(llcl_region_register(context, memory, size, 0, &shared.region));
    CHECK(llcl_region_address(shared.region) == memory);
    CHECK_EQUAL(llcl_region_size(shared.region), size);
    shared.bytes = memory;
    shared.size = size;
    shared.remote = calloc(llcl_size(context), sizeof mine);
    CHECK(shared.remote != NULL);
    mine = llcl_region_remote(shared.region, 0);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, shared.remote));
    use(context, &shared);
    CHECK_OK(llcl_region_free(shared.region));
    free(shared.remote);
}

static void run(llcl_context_t *context)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t sizes[] = {1, 7, 8, page - 1, page, page + 1, 3 * page, 5u << 20};
    unsigned char stack_memory[300];
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct shared shared;
        unsigned char *heap = malloc(sizes[i] + 1);
        share(context, ALLOCATED, sizes[i], &shared);
        CHECK_EQUAL(llcl_region_size(shared.region), sizes[i]);
        CHECK(llcl_region_address(shared.region) == shared.bytes);
        CHECK_EQUAL((uintptr_t)shared.bytes % page, 0);
        use(context, &shared);
        share_end(context, &shared);
        CHECK(heap != NULL);
        exchanged(context, heap + 1, sizes[i]);
        free(heap);
    }
    exchanged(context, stack_memory + 3, 293);
    exchanged(context, static_memory[llcl_rank(context)] + 1, 255);
}

TEST_MAIN(run)
