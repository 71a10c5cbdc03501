/* Broken if this fails: overlapping source and destination within one region are not moved as by
 * memmove, in either direction.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "shared.h"

#define SIZE 200000u
#define BEYOND 64u /* bytes behind the source and the destination that are compared, too */

static void run(llcl_context_t *context)
{
    static const size_t shifts[] = {1, 3, 8, 64, 5000};
    static const size_t sizes[] = {5, 64, 4097, 150001};
    uint32_t me = llcl_rank(context), flags;
    unsigned char *expected = malloc(SIZE);
    int kind, up, is_read;
    size_t i, j;
    CHECK(expected != NULL);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared mine;
        region_make(context, kind, SIZE, &mine);
        for (i = 0; i < 5; i++) for (j = 0; j < 4; j++) for (up = 0; up < 2; up++)
        for (is_read = 0; is_read < 2; is_read++) for (flags = 0; flags < 2; flags++) {
            size_t from = up ? 7 : 7 + shifts[i], to = up ? 7 + shifts[i] : 7;
            size_t used = 7 + shifts[i] + sizes[j] + BEYOND;
            CHECK(used <= SIZE);
            pattern_fill(mine.bytes, used, (uint32_t)(i + j));
            memcpy(expected, mine.bytes, used);
            memmove(expected + to, expected + from, sizes[j]);
            if (is_read) {
                llcl_read_params_t read = {0};
                read.peer = me;
                read.flags = flags ? LLCL_FLAG_DEFER : 0;
                read.source = llcl_region_remote(mine.region, from);
                read.destination = llcl_region_local(mine.region, to);
                read.size = sizes[j];
                CHECK_OK(llcl_read(context, &read));
            } else {
                llcl_write_params_t write = {0};
                write.peer = me;
                write.flags = flags ? LLCL_FLAG_DEFER : 0;
                write.source = llcl_region_local(mine.region, from);
                write.destination = llcl_region_remote(mine.region, to);
                write.size = sizes[j];
                CHECK_OK(llcl_write(context, &write));
            }
            CHECK(memcmp(mine.bytes, expected, used) == 0);
        }
        region_drop(&mine);
    }
    free(expected);
}

TEST_MAIN(run)
