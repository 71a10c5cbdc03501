/* Broken if this fails: an alias shows other bytes than its part of the region, has other rights
 * than it was given, wakes no thread that sleeps on one of its words, stays when its region has
 * ended, or is made where something is mapped.
 * ranks: 2
 * threads: yes
 */
#include "shared.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static __thread size_t page;

/* Whether the kernel may load from or store to the byte: 1, 0. */
static int allowed(char *byte, int store)
{
    int ends[2], done;
    char given = 5;
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], &given, 1) == 1);
    done = store ? read(ends[0], byte, 1) == 1 : write(ends[1], byte, 1) == 1;
    CHECK(done || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return done;
}

static void *vacant(size_t size)
{
    void *place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(place != MAP_FAILED);
    CHECK(munmap(place, size) == 0);
    return place;
}

/* With ranks as threads another one may have taken the place. */
static char *alias_at(llcl_region_t *region, uint64_t offset, size_t size, uint32_t access)
{
    void *alias = NULL, *place;
    llcl_status_t status;
    do {
        place = vacant(size);
        status = llcl_region_alias(region, offset, size, place, access, &alias);
    } while (status == LLCL_ERR_RANGE);
    CHECK_OK(status);
    CHECK(alias == place);
    return alias;
}

static void rights(struct shared *mine)
{
    uint32_t access;
    for (access = 0; access < 4; access++) {
        void *alias;
        if (access == (LLCL_ACCESS_READ | LLCL_ACCESS_WRITE))
            alias = alias_at(mine->region, page, 2 * page, access);
        else
            CHECK_OK(llcl_region_alias(mine->region, page, 2 * page, NULL, access, &alias));
        CHECK((unsigned char *)alias != mine->bytes + page);
        CHECK_EQUAL(allowed(alias, 1), (access & LLCL_ACCESS_WRITE) != 0);
        if (access != LLCL_ACCESS_WRITE)
            CHECK_EQUAL(allowed(alias, 0), (access & LLCL_ACCESS_READ) != 0);
        CHECK(mprotect(alias, page, PROT_READ) == 0);
        mine->bytes[page] = (unsigned char)(40 + access);
        CHECK_EQUAL(*(volatile unsigned char *)alias, 40 + access);
        CHECK_OK(llcl_region_unalias(mine->region, alias));
        CHECK_STATUS(llcl_region_unalias(mine->region, alias), LLCL_ERR_INVALID);
        CHECK(test_in_threads() || !allowed(alias, 0));
    }
}

/* The write of the peer wakes the sleeper, which would look by itself some 40 ms later. See
 * wait_word_wakes. */
static void wakes_at_once(llcl_context_t *context, uint64_t *words, llcl_write_params_t *out)
{
    int64_t best = INT64_MAX, mine, both[2];
    int i;
    for (i = 0; i < 4; i++) {
        words[0] = 0;
        words[1] = 1;
        fence(context);
        if (llcl_rank(context) == 0) {
            sleep_ms(110);
            mine = now_ns();
            CHECK_OK(llcl_write(context, out));
        } else {
            CHECK_OK(llcl_wait_word(context, &words[0], 1, TEST_PATIENCE_NS));
            mine = now_ns();
        }
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, both));
        best = both[1] - both[0] < best ? both[1] - both[0] : best;
    }
    CHECK(best < 20000000);
}

/* A peer writes to the region; this rank's thread sleeps on the alias, and sends from it. */
static void wakes(llcl_context_t *context, struct shared *mine)
{
    uint32_t peer = 1 - llcl_rank(context);
    uint64_t *words = (uint64_t *)(void *)alias_at(mine->region, page, page, LLCL_ACCESS_READ | LLCL_ACCESS_WRITE);
    llcl_write_params_t out = LLCL_WRITE_PARAMS_INIT;
    unsigned round;
    words[0] = 0;
    out.peer = peer;
    out.source = llcl_local_address(&words[1]);
    out.destination = remote_at(mine, peer, page);
    out.size = 8;
    fence(context);
    for (round = 1; round < 50; round++) {
        words[1] = round;
        if (llcl_rank(context) == round % 2) {
            CHECK_OK(llcl_write(context, &out));
        } else {
            CHECK_OK(llcl_wait_word(context, &words[0], round, TEST_PATIENCE_NS));
            CHECK_EQUAL(word_get(&mine->words[page / 8]), round);
        }
    }
    wakes_at_once(context, words, &out);
    CHECK_OK(llcl_region_unalias(mine->region, words));
}

static void refused(llcl_context_t *context, struct shared *mine)
{
    struct shared heap;
    void *alias = NULL;
    llcl_region_t *region = mine->region;
    region_make(context, REGISTERED, 4 * page, &heap);
    CHECK_STATUS(llcl_region_alias(heap.region, 0, page, NULL, 1, &alias), LLCL_ERR_UNSUPPORTED);
    CHECK_STATUS(llcl_region_unalias(heap.region, heap.bytes), LLCL_ERR_INVALID);
    region_drop(&heap);
    CHECK_STATUS(llcl_region_alias(heap.region, 0, page, NULL, 1, &alias), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_region_unalias(heap.region, heap.bytes), LLCL_ERR_STATE);
    CHECK_STATUS(llcl_region_alias(NULL, 0, page, NULL, 1, &alias), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_unalias(NULL, mine->bytes), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 0, page, NULL, 1, NULL), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 0, page, NULL, 4, &alias), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 0, 0, NULL, 1, &alias), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 8, page, NULL, 1, &alias), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 0, page, mine->bytes + 8, 1, &alias), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_region_alias(region, 0, page, mine->bytes, 1, &alias), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_region_alias(region, page, 3 * page + 1, NULL, 1, &alias), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_region_alias(region, 4 * page, 1, NULL, 1, &alias), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_region_alias(region, UINT64_MAX - page + 1, page, NULL, 1, &alias), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_region_alias(region, page, SIZE_MAX, NULL, 1, &alias), LLCL_ERR_RANGE);
    CHECK_STATUS(llcl_region_unalias(region, mine->bytes), LLCL_ERR_INVALID);
    CHECK(alias == NULL);
}

static void run(llcl_context_t *context)
{
    struct shared mine;
    void *last, *kept;
    page = (size_t)sysconf(_SC_PAGESIZE);
    share(context, ALLOCATED, 4 * page, &mine);
    rights(&mine);
    wakes(context, &mine);
    refused(context, &mine);
    CHECK_OK(llcl_region_alias(mine.region, 0, 4 * page, NULL, LLCL_ACCESS_READ, &last));
    CHECK_OK(llcl_region_alias(mine.region, 3 * page, 1, NULL, LLCL_ACCESS_READ, &kept));
    CHECK(allowed(last, 0) && allowed(kept, 0));
    share_end(context, &mine);
    CHECK(test_in_threads() || (!allowed(last, 0) && !allowed(kept, 0)));
}

TEST_MAIN(run)
