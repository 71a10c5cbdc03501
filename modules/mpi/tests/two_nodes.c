/* Ranks on nodes of their own (LLCL_NODE_ID) reach each other over MPI: messages with answers,
 * reads and writes of sizes around the limits of frames, atomics. The program uses MPI at the same
 * time. With an argument the program asks for MPI_THREAD_FUNNELED only, and llcl_init_mpi
 * refuses. */
#include "expect.h"
#include <llcl_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 2000, HANDLER = 3, LARGE = 200000 };

static int size;

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
        MPI_Barrier(MPI_COMM_WORLD);
        for (size_t at = 0; at < sizes[s]; at++)
            EXPECT(own[at] == (unsigned char)(at * 7 + (size_t)from + s));
        MPI_Barrier(MPI_COMM_WORLD);
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
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(__atomic_load_n(handled, __ATOMIC_RELAXED) == MESSAGES);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int level, handled = 0;
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t mine, all[64];
    unsigned char *own;

    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    LLCL_CHECK(llcl_init_mpi(comm, NULL, &context));
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

    /* Each rank adds to a word of rank 0. */
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    add.target = all[0];
    add.operand = 1;
    memset(own, 0, 8);
    MPI_Barrier(comm);
    for (int turn = 0; turn < 1000; turn++)
        LLCL_CHECK(llcl_fetch_add(context, &add));
    MPI_Barrier(comm);
    EXPECT(rank != 0 || *(uint64_t *)own == 1000 * (uint64_t)size);

    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    if (rank == 0)
        printf("two_nodes: %d ranks passed\n", size);
    return 0;
}
