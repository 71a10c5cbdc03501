/* Broken if this fails: the memory of a freed region that a living peer has used goes to another
 * region, into which a late store of the peer then lands; or memory of a region that nobody used is
 * not used again.
 * ranks: 2
 * modes: auto
 */
#include "shared.h"

#define SIZE 65536u

/* Where in the memory file the region lies, by the kernel's table of mappings. */
static uint64_t offset_of(llcl_region_t *region)
{
    uintptr_t address = (uintptr_t)llcl_region_address(region);
    unsigned long first, end, offset;
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %*s %lx", &first, &end, &offset) == 3 && first <= address &&
            address < end) {
            fclose(maps);
            return offset + (address - first);
        }
    }
    CHECK(!"the region is mapped");
    return 0;
}

/* Allocates a region, frees it again, and tells where it was. */
static uint64_t next_offset(llcl_context_t *context)
{
    llcl_region_t *region = NULL;
    uint64_t offset;
    CHECK_OK(llcl_region_allocate(context, SIZE, 0, &region));
    offset = offset_of(region);
    CHECK_OK(llcl_region_free(region));
    return offset;
}

static void run(llcl_context_t *context)
{
    struct shared used;
    uint64_t unused = next_offset(context), offset, *late = NULL;
    CHECK_EQUAL(next_offset(context), unused);
    share(context, ALLOCATED, SIZE, &used);
    offset = offset_of(used.region);
    CHECK_EQUAL(offset, unused);
    if (llcl_rank(context) == 1) {
        late = llcl_remote_pointer(context, 0, used.remote[0], SIZE);
        CHECK(late != NULL);
        *late = 1;
    }
    share_end(context, &used);
    if (llcl_rank(context) == 0) {
        unused = next_offset(context);
        CHECK(unused != offset);
        CHECK_EQUAL(next_offset(context), unused);
    } else {
        CHECK_EQUAL(next_offset(context), offset);
    }
    fence(context);
}

TEST_MAIN(run)
