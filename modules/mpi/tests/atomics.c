/* Atomics over MPI, with the level of threads that the program asks MPI for: multiple, funneled or
 * serialized. 2 ranks. With the last two only the thread that has initialised MPI may call it, also
 * for the atomics of other threads and for answers; the program replaces MPI_Isend and MPI_Testsome
 * to see that.
 *
 * Tickets: both ranks add 1 to a word of each, at the same time and in each way to call. The values
 * that they fetch are the numbers from 0 on, each once. Then each operation on words of one to
 * eight bytes is compared with plain C. An atomic that the owner refuses ends with its status. */
#include "expect.h"
#include <llcl_mpi.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 200, SECONDS = 30, CELL = 8, BYTES = 64 };
/* CHAIN: a callback begins the next one. THREAD: a thread that has not initialised MPI takes them.
 * HELPED: such a thread makes progress, too, and may find atomics that the other has left. */
enum { BLOCKING, NAMED, CALLBACK, WORD, TRIED, PARKED, DEFERRED, CHAIN, THREAD, HELPED, WAYS };
#define NS INT64_C(1000000000)

static int level;
static pthread_t initialiser;
static llcl_context_t *context;
static llcl_remote_t all[2];
static unsigned char *region;
static uint64_t tickets[2][WAYS][COUNT]; /* by the owner of the word */
static uint64_t ended;                   /* atomics of this way */

static void may_call_mpi(void)
{
    EXPECT(level == MPI_THREAD_MULTIPLE || pthread_equal(pthread_self(), initialiser));
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    may_call_mpi();
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Testsome(int count, MPI_Request *requests, int *ended_count, int *indices, MPI_Status *statuses)
{
    may_call_mpi();
    return PMPI_Testsome(count, requests, ended_count, indices, statuses);
}

static void meet(void)
{
    LLCL_CHECK(llcl_flush_all(context));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

static void end(void *unused, llcl_status_t status)
{
    (void)unused;
    EXPECT(status == LLCL_OK);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
}

static llcl_atomic_params_t ticket(uint32_t owner, int way, int turn)
{
    llcl_atomic_params_t take = LLCL_ATOMIC_PARAMS_INIT;
    take.peer = owner;
    take.target = all[owner];
    take.op = LLCL_OP_ADD;
    take.type = LLCL_TYPE_U64;
    take.operand = 1;
    take.result = &tickets[owner][way][turn];
    return take;
}

static void *help(void *unused)
{
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < 2 * COUNT)
        LLCL_CHECK(llcl_progress(context));
    return unused;
}

static void *by_a_thread(void *unused)
{
    for (int turn = 0; turn < COUNT; turn++)
        for (uint32_t owner = 0; owner < 2; owner++) {
            llcl_atomic_params_t take = ticket(owner, THREAD, turn);
            end(NULL, llcl_atomic(context, &take));
        }
    return unused;
}

static struct chain {
    uint32_t owner;
    int turn;
} chains[2];

static void next(void *data, llcl_status_t status)
{
    struct chain *chain = data;
    if (chain->turn > 0)
        end(NULL, status);
    if (chain->turn < COUNT) {
        llcl_atomic_params_t take = ticket(chain->owner, CHAIN, chain->turn++);
        take.flags = LLCL_FLAG_PARK;
        take.on_complete = llcl_callback(next, chain);
        LLCL_CHECK(llcl_try_atomic_async(context, &take));
    }
}

static void take_ticket(uint32_t owner, int way, int turn)
{
    llcl_atomic_params_t take = ticket(owner, way, turn);
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    llcl_status_t status;
    switch (way) {
    case BLOCKING:
        return end(NULL, llcl_atomic(context, &take));
    case NAMED:
        add.peer = owner;
        add.target = all[owner];
        add.operand = 1;
        add.result = take.result;
        return end(NULL, llcl_fetch_add(context, &add));
    case CHAIN:
        chains[owner].owner = owner;
        return turn == 0 ? next(&chains[owner], LLCL_OK) : (void)0;
    }
    take.on_complete = way == WORD ? llcl_add_on(&ended) : llcl_callback(end, NULL);
    take.flags = way == PARKED ? LLCL_FLAG_PARK : way == DEFERRED ? LLCL_FLAG_DEFER : 0;
    while ((status = (way == TRIED ? llcl_try_atomic_async : llcl_atomic_async)(context, &take)) > 0)
        LLCL_CHECK(llcl_progress(context));
    LLCL_CHECK(status);
}

static void take_tickets(int way)
{
    pthread_t thread;
    ended = 0;
    meet();
    if (way == THREAD || way == HELPED)
        EXPECT(pthread_create(&thread, NULL, way == THREAD ? by_a_thread : help, NULL) == 0);
    for (int turn = 0; way != THREAD && turn < COUNT; turn++)
        for (uint32_t owner = 0; owner < 2; owner++)
            take_ticket(owner, way, turn);
    LLCL_CHECK(llcl_wait_word(context, &ended, 2 * COUNT, SECONDS * NS));
    if (way == THREAD || way == HELPED)
        pthread_join(thread, NULL);
    meet();
    EXPECT(ended == 2 * COUNT);
}

/* Each ticket of a word was taken once, by one rank. */
static void count_tickets(uint32_t owner)
{
    static uint64_t of_both[2][WAYS * COUNT];
    static int taken[2 * WAYS * COUNT];
    memset(taken, 0, sizeof taken);
    LLCL_CHECK(llcl_allgather_bytes(context, tickets[owner], sizeof tickets[owner], of_both));
    for (int at = 0; at < 2 * WAYS * COUNT; at++) {
        uint64_t number = of_both[at / (WAYS * COUNT)][at % (WAYS * COUNT)];
        EXPECT(number < 2 * WAYS * COUNT && taken[number]++ == 0);
    }
}

/* What a word of the peer that was `old` is after an atomic. */
static uint64_t changed(uint32_t op, uint32_t type, uint64_t operand, uint64_t compare, uint64_t old)
{
    llcl_atomic_params_t change = LLCL_ATOMIC_PARAMS_INIT;
    uint64_t before = 0, after = 0;
    change.peer = (uint32_t)(1 - rank);
    change.target = llcl_at(all[1 - rank], CELL);
    change.op = LLCL_OP_STORE;
    change.type = type;
    change.operand = old;
    LLCL_CHECK(llcl_atomic(context, &change));
    change.op = op;
    change.operand = operand;
    change.compare = compare;
    change.result = &before;
    LLCL_CHECK(llcl_atomic(context, &change));
    EXPECT(before == old);
    change.op = LLCL_OP_LOAD;
    change.result = &after;
    LLCL_CHECK(llcl_atomic(context, &change));
    return after;
}

static void operations(void)
{
    static const struct {
        uint32_t type;
        uint64_t most; /* all bits of the type */
    } types[] = {{LLCL_TYPE_U8, 0xff}, {LLCL_TYPE_U16, 0xffff}, {LLCL_TYPE_U32, 0xffffffff}, {LLCL_TYPE_U64, UINT64_MAX}};
    meet();
    for (int at = 0; at < 4; at++) {
        uint32_t type = types[at].type;
        uint64_t most = types[at].most, old = most - 90;
        EXPECT(changed(LLCL_OP_ADD, type, 100, 0, old) == 9);
        EXPECT(changed(LLCL_OP_SUB, type, 3, 0, 2) == most);
        EXPECT(changed(LLCL_OP_SWAP, type, 77, 0, old) == 77);
        EXPECT(changed(LLCL_OP_COMPARE_SWAP, type, 77, old, old) == 77);
        EXPECT(changed(LLCL_OP_COMPARE_SWAP, type, 77, old - 1, old) == old);
        EXPECT(changed(LLCL_OP_AND, type, 0x6c, 0, old) == (old & 0x6c));
        EXPECT(changed(LLCL_OP_OR, type, 0x6c, 0, 3) == 0x6f);
        EXPECT(changed(LLCL_OP_XOR, type, most, 0, old) == (old ^ most));
        EXPECT(changed(LLCL_OP_MIN, type, 5, 0, old) == 5);
        EXPECT(changed(LLCL_OP_MAX, type, 5, 0, old) == old);
        EXPECT(changed(LLCL_OP_PROD, type, 3, 0, 41) == 123);
    }
    /* 1.5 + 0.25 and 1.5f * 4, as bits */
    EXPECT(changed(LLCL_OP_ADD, LLCL_TYPE_F64, UINT64_C(0x3fd0000000000000), 0, UINT64_C(0x3ff8000000000000)) == UINT64_C(0x3ffc000000000000));
    EXPECT(changed(LLCL_OP_PROD, LLCL_TYPE_F32, 0x40800000, 0, 0x3fc00000) == 0x40c00000);
    meet();
    for (int at = 2 * CELL; at < BYTES; at++)
        EXPECT(region[at] == 0);
}

/* The owner frees a region that the peer knows, and refuses the next atomic. */
static void refused(void)
{
    llcl_region_t *own;
    llcl_remote_t of[2];
    llcl_atomic_params_t add = ticket((uint32_t)(1 - rank), BLOCKING, 0);
    add.target = llcl_at(all[1 - rank], BYTES);
    EXPECT(llcl_atomic(context, &add) == LLCL_ERR_RANGE);
    LLCL_CHECK(llcl_region_allocate_shared(context, BYTES, &own, of));
    add.target = of[1 - rank];
    LLCL_CHECK(llcl_atomic(context, &add));
    meet();
    LLCL_CHECK(llcl_region_free(own));
    meet();
    EXPECT(llcl_atomic(context, &add) == LLCL_ERR_KEY);
    meet();
}

int main(int argc, char **argv)
{
    llcl_region_t *handle;
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    const char *name = argc > 1 ? argv[1] : "multiple";
    level = strcmp(name, "funneled") == 0 ? MPI_THREAD_FUNNELED : strcmp(name, "serialized") == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
    initialiser = pthread_self();
    alarm(2 * SECONDS); /* an atomic that does not end */
    context = start(level);
    LLCL_CHECK(llcl_region_allocate_shared(context, BYTES, &handle, all));
    region = llcl_region_address(handle);
    LLCL_CHECK(llcl_query_peer(context, (uint32_t)(1 - rank), &peer));
    EXPECT(peer.transport == LLCL_TRANSPORT_WIRE);
    for (int way = 0; way < WAYS; way++)
        take_tickets(way);
    for (uint32_t owner = 0; owner < 2; owner++)
        count_tickets(owner);
    operations();
    refused();
    LLCL_CHECK(llcl_finalize(context));
    printf("atomics: rank %d: passed, %s\n", rank, name);
    end_mpi();
    return 0;
}
