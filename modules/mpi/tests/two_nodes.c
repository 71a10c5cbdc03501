/* Ranks on nodes of their own (LLCL_NODE_ID) reach each other over MPI: messages with answers,
 * reads and writes of sizes around the limits of frames, atomics, polls. The program uses MPI at
 * the same time. The argument is the level of threads that the program asks MPI for. With "single",
 * llcl_init_mpi refuses. With "funneled" and "serialized" the library makes progress only in calls
 * of this thread, so the ranks meet in calls of the library. */
#include "expect.h"
#include <llcl_mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 2000, HANDLER = 3, LARGE = 200000 };

static int size, level = MPI_THREAD_MULTIPLE;

/* Waits until all ranks are here. */
static void meet(llcl_context_t *context)
{
    if (level == MPI_THREAD_MULTIPLE)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
}

static int level_of(const char *name)
{
    return strcmp(name, "single") == 0 ? MPI_THREAD_SINGLE : strcmp(name, "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED;
}

static void reads_and_writes(llcl_context_t *context, const llcl_remote_t *all, unsigned char *own)
{
    static const size_t sizes[] = {1, 8, 48, 49, 4096, 8100, 8192, 32768, 32769, LARGE};
    unsigned char *bytes = malloc(LARGE), *back = malloc(LARGE);
    int peer = (rank + 1) % size, from = (rank + size - 1) % size;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t at = 0; at < sizes[s]; at++)
            bytes[at] = (unsigned char)(at * 7 + (size_t)rank + s);
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        put.peer = (uint32_t)peer;
        put.source = llcl_local_address(bytes);
        put.destination = all[peer];
        put.size = sizes[s];
        LLCL_CHECK(llcl_write(context, &put));
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.peer = (uint32_t)peer;
        get.source = all[peer];
        get.destination = llcl_local_address(back);
        get.size = sizes[s];
        memset(back, 0, sizes[s]);
        LLCL_CHECK(llcl_read(context, &get));
        EXPECT(memcmp(bytes, back, sizes[s]) == 0);
        meet(context);
        for (size_t at = 0; at < sizes[s]; at++)
            EXPECT(own[at] == (unsigned char)(at * 7 + (size_t)from + s));
        meet(context);
    }
    free(bytes);
    free(back);
}

/* Answers with the payload, each byte plus one. */
static void more(llcl_am_t *message, void *data)
{
    llcl_am_view_t view;
    unsigned char answer[4096];
    LLCL_CHECK(llcl_am_view(message, &view));
    for (size_t at = 0; at < view.payload_size; at++)
        answer[at] = (unsigned char)(((const unsigned char *)view.payload)[at] + 1);
    __atomic_fetch_add((int *)data, 1, __ATOMIC_RELAXED);
    LLCL_CHECK(llcl_am_reply(message, answer, view.payload_size));
}

static void messages(llcl_context_t *context, int *handled)
{
    static const size_t sizes[] = {0, 1, 100, 256, 4096};
    unsigned char payload[4096], answer[4096];
    int peer = (rank + 1) % size;
    for (int number = 0; number < MESSAGES; number++) {
        llcl_am_params_t ask = LLCL_AM_PARAMS_INIT;
        size_t bytes = sizes[number % 5];
        memset(payload, number & 127, bytes);
        memset(answer, 0, sizeof answer);
        ask.peer = (uint32_t)peer;
        ask.id = HANDLER;
        ask.payload = payload;
        ask.payload_size = bytes;
        ask.reply = answer;
        ask.reply_capacity = sizeof answer;
        LLCL_CHECK(llcl_am(context, &ask));
        for (size_t at = 0; at < bytes; at++)
            EXPECT(answer[at] == (number & 127) + 1);
    }
    meet(context);
    EXPECT(__atomic_load_n(handled, __ATOMIC_RELAXED) == MESSAGES);
}

/* A rank that only polls for messages makes progress, at each level. */
static void by_polls(llcl_context_t *context, int *handled)
{
    int before = __atomic_load_n(handled, __ATOMIC_RELAXED);
    time_t limit = time(NULL) + 20;
    llcl_am_params_t tell = LLCL_AM_PARAMS_INIT;
    meet(context);
    tell.peer = (uint32_t)((rank + 1) % size);
    tell.id = HANDLER;
    LLCL_CHECK(llcl_am(context, &tell));
    while (__atomic_load_n(handled, __ATOMIC_RELAXED) == before) {
        EXPECT(time(NULL) < limit);
        LLCL_CHECK(llcl_am_poll(context, 1, NULL));
    }
    meet(context);
}

struct work {
    llcl_context_t *context;
    llcl_remote_t all[64];
    int over;
};

/* A thread that may not call MPI itself where the level is below MPI_THREAD_MULTIPLE. */
static void *reads(void *data)
{
    struct work *work = data;
    if (level != MPI_THREAD_MULTIPLE) {
        EXPECT(llcl_finalize(work->context) == LLCL_ERR_STATE);
        EXPECT(strstr(llcl_last_error(), "the thread that has made the context") != NULL);
    }
    for (int turn = 0; turn < 100; turn++) {
        uint64_t word[2] = {0, 0};
        llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
        get.peer = (uint32_t)(rank + 1) % (uint32_t)size;
        get.source = work->all[get.peer];
        get.destination = llcl_local_address(word);
        get.size = 8;
        LLCL_CHECK(llcl_read(work->context, &get));
        EXPECT(word[0] == 77);
    }
    __atomic_store_n(&work->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The thread reads while this one calls the library. */
static void by_a_thread(struct work *work, unsigned char *own)
{
    pthread_t thread;
    *(uint64_t *)own = 77;
    meet(work->context);
    pthread_create(&thread, NULL, reads, work);
    while (!__atomic_load_n(&work->over, __ATOMIC_ACQUIRE))
        LLCL_CHECK(llcl_progress(work->context));
    pthread_join(thread, NULL);
    meet(work->context);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int given, handled = 0;
    llcl_capabilities_t can = LLCL_CAPABILITIES_INIT;
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t mine, all[64];
    unsigned char *own;

    if (argc > 1)
        level = level_of(argv[1]);
    MPI_Init_thread(&argc, &argv, level, &given);
    EXPECT(given == level);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    LLCL_CHECK(llcl_init_mpi(comm, NULL, &context));
    LLCL_CHECK(llcl_query(context, &can));
    EXPECT(can.opener_polls == (level != MPI_THREAD_MULTIPLE));
    LLCL_CHECK(llcl_am_register(context, HANDLER, more, &handled));
    LLCL_CHECK(llcl_region_allocate(context, LARGE, 0, &region));
    own = llcl_region_address(region);
    mine = llcl_region_remote(region, 0);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);

    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    LLCL_CHECK(llcl_query_peer(context, (uint32_t)(rank + 1) % (uint32_t)size, &info));
    EXPECT(info.transport == LLCL_TRANSPORT_WIRE);
    reads_and_writes(context, all, own);
    messages(context, &handled);
    by_polls(context, &handled);
    struct work work = {.context = context};
    memcpy(work.all, all, sizeof all);
    by_a_thread(&work, own);

    /* Each rank adds to a word of rank 0. */
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    add.target = all[0];
    add.operand = 1;
    memset(own, 0, 8);
    meet(context);
    for (int turn = 0; turn < 1000; turn++)
        LLCL_CHECK(llcl_fetch_add(context, &add));
    meet(context);
    EXPECT(rank != 0 || *(uint64_t *)own == 1000 * (uint64_t)size);

    /* The rank waits for the hub in its process. With "funneled" it polls meanwhile: else the hub
     * would hear nothing of the other ranks, and end after its 2 s. */
    meet(context);
    double begin = MPI_Wtime();
    LLCL_CHECK(llcl_finalize(context));
    EXPECT(MPI_Wtime() - begin < 1.9);
    MPI_Finalize();
    if (rank == 0)
        printf("two_nodes: %d ranks passed\n", size);
    return 0;
}
