/* Broken if this fails: the memory that llcl_coll_query reports is not what plans take in this
 * process, or the private memory of plans is not free after llcl_coll_free.
 * ranks: 1 2 3 4
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("skipped: a sanitizer's malloc has no mallinfo2");
    return TEST_SKIP_CODE;
}
#else
#include <malloc.h>

#define PLANS 64u
#define TURNS 4

/* What this rank's plans take, all together. If ranks are threads, malloc's numbers and so these
 * are sums over all ranks. */
struct taken {
    int64_t memory, reported, measured, left;
};

static int64_t allocated(llcl_context_t *context)
{
    struct mallinfo2 now;
    fence(context);
    now = mallinfo2();
    fence(context);
    return (int64_t)(now.uordblks + now.hblkhd);
}

static int64_t total(llcl_context_t *context, int64_t mine)
{
    int64_t all[COLL_MOST], sum = 0;
    uint32_t i;
    if (!test_in_threads())
        return mine;
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    for (i = 0; i < llcl_size(context); i++)
        sum += all[i];
    return sum;
}

/* Whether it is so at any rank: all ranks do the next turn, or none. */
static int any(llcl_context_t *context, int mine)
{
    int all[COLL_MOST], some = 0;
    uint32_t i;
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    for (i = 0; i < llcl_size(context); i++)
        some |= all[i];
    return some;
}

static struct taken take(llcl_context_t *context, const struct coll_case *asked, uint32_t flags,
                         struct coll_memory *memory)
{
    struct coll_run *runs = calloc(PLANS, sizeof *runs);
    struct taken taken = {0};
    int64_t before;
    uint32_t i;
    CHECK(runs != NULL);
    for (i = 0; i < PLANS; i++) {
        memory->used = 0;
        coll_prepare(&runs[i], asked, memory, memory);
        runs[i].params.flags |= flags;
    }
    before = allocated(context);
    for (i = 0; i < PLANS; i++)
        CHECK_OK(coll_init(asked->operation, asked->varied, &runs[i].params, &runs[i].plan));
    taken.measured = allocated(context) - before;
    for (i = 0; i < PLANS; i++) {
        llcl_coll_info_t info = coll_info(runs[i].plan);
        CHECK(info.memory_private < info.memory);
        taken.reported += (int64_t)info.memory_private;
        taken.memory += (int64_t)info.memory;
    }
    for (i = 0; i < PLANS; i++)
        CHECK_OK(llcl_coll_free(runs[i].plan));
    taken.left = allocated(context) - before;
    for (i = 0; i < PLANS; i++)
        coll_forget(&runs[i]);
    free(runs);
    taken.memory = total(context, taken.memory);
    taken.reported = total(context, taken.reported);
    return taken;
}

/* Whether the reported bytes are what malloc says, and little is left after the free. */
static int matches(const struct taken *taken, int64_t near, int64_t plans)
{
    return taken->measured <= taken->reported + near * plans &&
           taken->reported <= taken->measured + near * plans && taken->left < 128 * plans;
}

static void compare(llcl_context_t *context, const char *what, const struct coll_case *asked, uint32_t flags,
                    struct coll_memory *memory)
{
    struct taken taken;
    int64_t ranks = test_in_threads() ? llcl_size(context) : 1, plans = PLANS * ranks;
    /* malloc adds some 12 bytes to each allocation: to some ten, and to one for each rank of
     * another node. */
    int64_t near = 128 + (coll_is_posted(context) ? 16 * llcl_size(context) : 0);
    int turn, far = 1;
    /* The first plans make tables of the context grow. A wire's tables and packets grow whenever
     * more messages are under way than ever before. So bytes that one turn alone does not explain
     * are not the plans'. */
    take(context, asked, flags, memory);
    for (turn = 0; turn < TURNS && far; turn++) {
        taken = take(context, asked, flags, memory);
        far = any(context, !matches(&taken, near, plans));
    }
    if (ranks == 1 || llcl_rank(context) == 0)
        printf("rank %u: %s: %lld bytes a plan, %lld of them private; allocated %lld, %lld after the free\n",
               llcl_rank(context), what, (long long)(taken.memory / plans), (long long)(taken.reported / plans),
               (long long)(taken.measured / plans), (long long)(taken.left / plans));
    CHECK(!far);
}

static void run(llcl_context_t *context)
{
    struct coll_memory mapped, registered;
    struct coll_case asked = {0};
    coll_memory_make(context, ALLOCATED, 1 << 20, &mapped);
    coll_memory_make(context, REGISTERED, 1 << 20, &registered);
    asked.team = coll_world(context);
    asked.count = 500;
    asked.type = LLCL_TYPE_U32;
    asked.op = LLCL_OP_ADD;
    asked.operation = BARRIER;
    compare(context, "barrier", &asked, 0, &mapped);
    asked.operation = ALLREDUCE;
    compare(context, "allreduce", &asked, 0, &mapped);
    compare(context, "allreduce of copies", &asked, 0, &registered);
    asked.operation = ALLTOALL;
    asked.varied = 1;
    compare(context, "alltoallv of copies", &asked, 0, &registered);
    compare(context, "alltoallv of any buffers", &asked, LLCL_COLL_REBIND, &mapped);
    asked.varied = 0;
    asked.operation = REDUCE;
    asked.op = LLCL_OP_USER;
    compare(context, "reduce by a function", &asked, 0, &mapped);
    fence(context);
    region_drop(&mapped.shared);
    region_drop(&registered.shared);
}

int main(int argc, char **argv)
{
    /* mallinfo2 counts freed memory that a thread keeps for itself as allocated. */
    if (argc > 0 && !getenv("GLIBC_TUNABLES")) {
        CHECK(setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1) == 0);
        execv("/proc/self/exe", argv);
        return 1;
    }
    return test_main(run, NULL);
}
#endif
