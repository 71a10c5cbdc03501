/* Broken if this fails: while a handler of a rank takes long, other ranks' reads, writes and
 * atomics on that rank's memory wait for it, also those that its progress thread must serve. The
 * handler ends when another rank has done all of them.
 * ranks: 2
 * cma: on off
 * threads: yes
 * timeout: 30
 */
#include "wild.h"
#include "am.h"

#define ROUNDS 2
#define RUNS 256u   /* where rank 0 keeps how many handlers have begun */
#define ENDS 257u   /* and how many may end */
#define BYTES 4096u

static void handle(llcl_am_t *message, void *data)
{
    uint64_t *words = data;
    (void)message;
    word_add(&words[RUNS], 1);
    AWAIT(&words[ENDS], words[RUNS]);
}

static uint64_t word_of(llcl_context_t *context, const struct shared *target, unsigned word, uint64_t *place)
{
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    read.source = remote_at(target, 0, 8 * word);
    read.destination = llcl_local_address(place);
    read.size = 8;
    CHECK_OK(llcl_read(context, &read));
    return word_get(place);
}

/* All operations, on both kinds of memory. */
static void operate(llcl_context_t *context, struct shared *targets, struct shared *mine)
{
    uint32_t me = llcl_rank(context);
    struct wild wild = {0};
    int kind;
    wild.peer = 0;
    wild.tier = TIER_BLOCKING;
    wild.local = llcl_region_local(mine->region, 0);
    wild.memory = mine->words + 1;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        for (wild.operation = 0; wild.operation < WILD_OPERATIONS; wild.operation++) {
            wild.remote = remote_at(&targets[kind], 0, 256 * me);
            wild.signal = remote_at(&targets[kind], 0, 256 * me + 64);
            CHECK_OK(wild_post(context, &wild));
        }
}

/* Rank 1's part of a round. */
static void send_and_operate(llcl_context_t *context, struct shared *targets, struct shared *mine, uint64_t round)
{
    uint64_t over = 0, *place = mine->words + 2;
    int64_t end = now_ns() + TEST_PATIENCE_NS;
    llcl_am_params_t am = am_to(0, 0, NULL, 0);
    llcl_atomic_params_t let_go = LLCL_ATOMIC_PARAMS_INIT;
    am.on_complete = llcl_store_on(&over);
    POST(llcl_try_am_async(context, &am));
    while (word_of(context, &targets[ALLOCATED], RUNS, place) < round)
        CHECK(now_ns() < end);
    operate(context, targets, mine);
    CHECK_EQUAL(word_get(&over), 0);
    let_go.target = remote_at(&targets[ALLOCATED], 0, 8 * ENDS);
    let_go.op = LLCL_OP_ADD;
    let_go.type = LLCL_TYPE_U64;
    let_go.operand = 1;
    CHECK_OK(llcl_atomic(context, &let_go));
    AWAIT(&over, 1);
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context);
    struct shared targets[MEMORY_KINDS], mine;
    uint64_t round;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, BYTES, &targets[kind]);
    region_make(context, ALLOCATED, 64, &mine);
    if (me == 0)
        am_register(context, 0, handle, targets[ALLOCATED].words);
    fence(context);
    for (round = 1; round <= ROUNDS; round++) {
        if (me != 0)
            send_and_operate(context, targets, &mine, round);
        /* Inside of the library in the first round, where this thread may be the one that runs the
         * handler; outside of it in the second. */
        else if (round == 1)
            AM_AWAIT(context, &targets[ALLOCATED].words[ENDS], round);
        else
            AWAIT(&targets[ALLOCATED].words[ENDS], round);
        fence(context);
    }
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &targets[kind]);
    region_drop(&mine);
}

TEST_MAIN(run)
