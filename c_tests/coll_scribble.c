/* Broken if this fails: a rank that overwrites the memory which another one lets it map for teams
 * and plans ends that other rank by a signal: a number there is used as an index without a check.
 * ranks: 2 3
 * modes: auto
 * engines: offload thread
 */
#include "coll.h"

#define KINDS 5u
#define USES 4u

/* Where memory of peers is mapped here, but for the beginnings of their memory files, which are not
 * the subject of this test. */
static uint32_t foreign(llcl_context_t *context, uint64_t (*spans)[2], uint32_t most)
{
    static char line[512];
    struct shared own;
    uint32_t count = 0, pass;
    unsigned long own_file = 0;
    region_make(context, ALLOCATED, 64, &own);
    for (pass = 0; pass < 2; pass++) {
        FILE *maps = fopen("/proc/self/maps", "r");
        CHECK(maps != NULL);
        while (fgets(line, sizeof line, maps)) {
            unsigned long begin, end, offset, file;
            if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &begin, &end, &offset, &file) != 4 ||
                !strstr(line, "memfd:llcl"))
                continue;
            if (begin <= (uintptr_t)own.bytes && (uintptr_t)own.bytes < end)
                own_file = file;
            if (pass == 1 && file != own_file && offset != 0 && count < most) {
                spans[count][0] = begin;
                spans[count++][1] = end;
            }
        }
        fclose(maps);
    }
    region_drop(&own);
    return count;
}

/* Writes over all of it; `saved` holds what was there. */
static void scribble(uint64_t (*spans)[2], uint32_t count, uint32_t kind, uint64_t *saved)
{
    uint64_t at, word;
    uint32_t i;
    for (i = 0; i < count; i++)
        for (at = spans[i][0]; at < spans[i][1]; at += sizeof word) {
            uint64_t was = word_get((uint64_t *)(uintptr_t)at);
            *saved++ = was;
            switch (kind) {
            case 0: word = UINT64_MAX; break;
            case 1: word = UINT64_C(0x4fffffff3fffffff); break;
            case 2: word = UINT64_C(0x0000000100000001); break;
            /* Only what is in use, so that more is believed. */
            case 3: word = was && at % 64 ? was ^ UINT64_C(0x7fffffff00000000) : was; break;
            default: word = was ? coll_mix(at) : 0; break;
            }
            word_set((uint64_t *)(uintptr_t)at, word);
        }
}

static void restore(uint64_t (*spans)[2], uint32_t count, const uint64_t *saved)
{
    uint64_t at;
    uint32_t i;
    for (i = 0; i < count; i++)
        for (at = spans[i][0]; at < spans[i][1]; at += sizeof at)
            word_set((uint64_t *)(uintptr_t)at, *saved++);
}

/* Whatever it answers: it must come back. */
static void use(llcl_coll_t *plan)
{
    if (llcl_coll_start(plan) == LLCL_OK)
        (void)llcl_coll_wait(plan, 10 * 1000 * 1000);
}

static void run(llcl_context_t *context)
{
    static const int operations[USES] = {BARRIER, ALLREDUCE, BROADCAST, ALLTOALL};
    uint64_t spans[64][2], bytes = 0, *saved;
    llcl_coll_t *plans[KINDS][USES];
    struct coll_memory memory;
    uint32_t kind, i, count = 0;
    int odd = llcl_rank(context) == 1;
    coll_memory_make(context, ALLOCATED, 1 << 16, &memory);
    for (kind = 0; kind < KINDS; kind++)
        for (i = 0; i < USES; i++) {
            struct coll_case asked = {0};
            struct coll_run run;
            asked.team = coll_world(context);
            asked.operation = operations[i];
            asked.count = 20;
            asked.type = LLCL_TYPE_U32;
            asked.op = LLCL_OP_ADD;
            CHECK_OK(coll_make(&run, &asked, &memory, &memory));
            coll_rounds(&run, 2);
            plans[kind][i] = run.plan;
            coll_forget(&run);
        }
    if (odd)
        count = foreign(context, spans, 64);
    for (i = 0; i < count; i++)
        bytes += spans[i][1] - spans[i][0];
    CHECK(!odd || count > 0);
    saved = malloc(bytes + 1);
    CHECK(saved != NULL);
    for (kind = 0; kind < KINDS; kind++) {
        fence(context);
        if (odd)
            scribble(spans, count, kind, saved);
        fence(context);
        for (i = 0; i < USES; i++)
            use(plans[kind][i]);
        fence(context);
        if (odd)
            restore(spans, count, saved);
    }
    fence(context);
    free(saved);
    region_drop(&memory.shared);
}

int main(void)
{
    coll_default("LLCL_FINALIZE_MS", "20");
    return test_main(run, NULL);
}
