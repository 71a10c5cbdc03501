/* Broken if this fails: llcl_region_allocate_at gives another address than the one that was asked
 * for, maps over what is there, loses an index or a range when it is refused, or its region is not
 * what peers write to; ranks that agree on an address can not have a heap there at every rank.
 * ranks: 1 3
 */
#include "shared.h"
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 3 << 20 };

/* Where nothing is mapped just now. */
static void *vacant(size_t size)
{
    void *place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(place != MAP_FAILED);
    CHECK(munmap(place, size) == 0);
    return place;
}

static void refused(llcl_context_t *context)
{
    llcl_region_t *region = NULL, *first;
    char *taken;
    unsigned round;
    CHECK_OK(llcl_region_allocate(context, BYTES, 0, &first));
    taken = llcl_region_address(first);
    taken[BYTES - 1] = 7;
    /* More often than a context has regions. */
    for (round = 0; round < 40; round++) {
        CHECK_STATUS(llcl_region_allocate_at(context, taken, 1, 0, &region), LLCL_ERR_RANGE);
        CHECK(strstr(llcl_last_error(), "address") != NULL);
        CHECK_STATUS(llcl_region_allocate_at(context, taken + (2 << 20), BYTES, 0, &region), LLCL_ERR_RANGE);
        CHECK_STATUS(llcl_region_allocate_at(context, NULL, BYTES, 0, &region), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_region_allocate_at(context, taken + 8, BYTES, 0, &region), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_region_allocate_at(context, taken, 0, 0, &region), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_region_allocate_at(context, taken, 1, 2, &region), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_region_allocate_at(context, taken, 1, 0, NULL), LLCL_ERR_INVALID);
        CHECK_STATUS(llcl_region_allocate_at(NULL, taken, 1, 0, &region), LLCL_ERR_INVALID);
        CHECK(llcl_region_allocate_at(context, (void *)(UINTPTR_MAX - UINTPTR_MAX % (1 << 20)), 1, 0, &region) < 0);
    }
    CHECK(region == NULL && taken[BYTES - 1] == 7);
    CHECK_OK(llcl_region_free(first));
}

/* The address is free again when the region is. */
static void comes_back(llcl_context_t *context)
{
    char *place = vacant(BYTES);
    unsigned round;
    for (round = 0; round < 20; round++) {
        llcl_region_t *region;
        CHECK_OK(llcl_region_allocate_at(context, place, BYTES - round, 0, &region));
        CHECK(llcl_region_address(region) == place);
        CHECK_EQUAL(llcl_region_size(region), BYTES - round);
        CHECK(place[0] == 0 && place[BYTES - 20] == 0);
        place[0] = place[BYTES - 20] = 1;
        CHECK_OK(llcl_region_free(region));
    }
}

struct said {
    uint64_t address, status, key;
};

static void symmetric(llcl_context_t *context)
{
    uint32_t rank = llcl_rank(context), size = llcl_size(context), peer = (rank + 1) % size, r, refusals;
    struct said mine = {0, 0, 0}, all[8];
    llcl_region_t *region = NULL;
    unsigned tries = 0;
    uint64_t *heap;
    do {
        CHECK(tries++ < 50);
        mine.address = (uintptr_t)vacant(BYTES);
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
        mine.address = all[0].address;
        mine.status = (uint64_t)(int64_t)llcl_region_allocate_at(context, (void *)(uintptr_t)mine.address, BYTES, 0, &region);
        mine.key = mine.status == 0 ? llcl_region_remote(region, 0).key : 0;
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
        for (refusals = r = 0; r < size; r++)
            refusals += all[r].status != 0;
        if (refusals > 0 && mine.status == 0)
            CHECK_OK(llcl_region_free(region));
    } while (refusals > 0);
    heap = (uint64_t *)(uintptr_t)mine.address;
    CHECK(llcl_region_address(region) == (void *)heap);
    {
        /* A pointer into one's own heap is the offset of the place at every rank. */
        uint64_t *mark = &heap[1000 + rank];
        llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
        out.peer = peer;
        out.destination.key = all[peer].key;
        out.destination.offset = (uint64_t)((char *)mark - (char *)heap);
        out.value = 77 + rank;
        out.size = 8;
        CHECK_OK(llcl_write_value(context, &out));
    }
    fence(context);
    CHECK_EQUAL(word_get(&heap[1000 + (rank + size - 1) % size]), 77 + (rank + size - 1) % size);
    fence(context);
    CHECK_OK(llcl_region_free(region));
}

static void run(llcl_context_t *context)
{
    refused(context);
    comes_back(context);
    symmetric(context);
}

static void configure(llcl_config_t *config)
{
    config->regions = 16;
}

TEST_MAIN_CONFIG(run, configure)
