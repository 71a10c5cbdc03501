/* Broken if this fails: a wait says LLCL_OK for a round that another thread of its rank is still
 * ending with an error. Rank 0 is killed while rank 2 is in its reduction; rank 1's progress thread
 * knows of it and waits until rank 2 has left the buffers, and then rank 1 comes to wait. Started
 * alone it drives the rounds: coll_late_error [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "coll.h"
#include "kill.h"

#define COUNT 3072u
#define BYTES (COUNT * 8)
#define BUSY_NS 300000000 /* less than the rank that waits is patient */
#define HEAD_START_NS 60000000

struct slow {
    uint32_t me;
    pid_t victim;
    uint64_t *word; /* rank 1's: rank 0 is dead */
    uint64_t calls;
};

/* Rank 2 combines slowly, and the first time long after rank 0 has died. */
static void add(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    struct slow *slow = data;
    const uint64_t *a = left, *b = right;
    uint64_t *sum = result, i;
    if (slow->me == 2 && word_add(&slow->calls, 1) == 0) {
        int64_t end = now_ns() + BUSY_NS;
        CHECK(kill(slow->victim, SIGKILL) == 0);
        word_set(slow->word, 1);
        while (now_ns() < end)
            usleep(1000);
    }
    for (i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

static void run(llcl_context_t *context)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    struct shared memory;
    struct slow slow = {0};
    llcl_peer_info_t victim = {0};
    uint32_t me = llcl_rank(context);
    victim.struct_size = sizeof victim;
    CHECK_OK(llcl_query_peer(context, 0, &victim));
    CHECK(victim.process > 1);
    share(context, ALLOCATED, 64 + 2 * BYTES, &memory);
    slow.me = me;
    slow.victim = (pid_t)victim.process;
    slow.word = me == 1 ? memory.words : llcl_remote_pointer(context, 1, remote_at(&memory, 1, 0), 8);
    CHECK(slow.word != NULL);
    params.team = coll_world(context);
    params.send = llcl_region_local(memory.region, 64);
    params.receive = llcl_region_local(memory.region, 64 + BYTES);
    params.type = LLCL_TYPE_U64;
    params.count = COUNT;
    params.op = LLCL_OP_USER;
    params.function = add;
    params.function_data = &slow;
    params.algorithm = "direct";
    params.engine = LLCL_ENGINE_OFFLOAD;
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    fence(context);
    CHECK_OK(llcl_coll_start(plan));
    if (me == 1) {
        int64_t end;
        while (word_get(slow.word) == 0)
            usleep(100);
        for (end = now_ns() + HEAD_START_NS; now_ns() < end;)
            usleep(1000);
    }
    CHECK_STATUS(llcl_coll_wait(plan, 5 * SECOND), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_coll_free(plan));
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap 0\n", me);
    fflush(stdout);
}

static void set_up(int round)
{
    static const char *const modes[] = {"auto", "offload", "direct"};
    setenv("LLCL_EXECUTION", modes[round % 3], 1);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"coll_late_error", 3, 3, set_up, run, 0};
    return kill_main(&plan, count, arguments);
}
