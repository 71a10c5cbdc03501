/* Ranks of several machines that MPI has started: each machine has a hub, and these are one. What is gathered, fenced, duplicated, and told of
 * deaths is the same on all of them; ranks of a machine share memory.
 *
 *   machines GROUP           GROUP ranks on each machine
 *   machines GROUP death     the last rank is killed, and all others are told (the launcher must let the job go on)
 *   machines GROUP abort     the last rank ends the job; nobody else would end
 *   machines GROUP finalize  MPI_Finalize comes before llcl_finalize, which says so */
#include <llcl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 100000, ROUNDS = 100, RANKS = 16 };

#define EXPECT(condition)                                                                              \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: rank %d: not so: %s (%s)\n", __FILE__, __LINE__, rank, #condition, \
                    llcl_last_error());                                                                \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                              \
        }                                                                                              \
    } while (0)

static int rank, size, group;

static int32_t allgather(void *comm, const void *mine, size_t bytes, void *all)
{
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *(MPI_Comm *)comm) != MPI_SUCCESS;
}

static void gather(llcl_context_t *context)
{
    unsigned char *mine = malloc(BYTES), *all = malloc((size_t)BYTES * (size_t)size);
    uint64_t number, numbers[RANKS];
    memset(mine, rank + 1, BYTES);
    EXPECT(llcl_allgather_bytes(context, mine, BYTES, all) == LLCL_OK);
    for (size_t at = 0; at < (size_t)BYTES * (size_t)size; at++)
        EXPECT(all[at] == at / BYTES + 1);
    for (number = (uint64_t)rank; number < ROUNDS * 100; number += 100) {
        EXPECT(llcl_allgather_bytes(context, &number, sizeof number, numbers) == LLCL_OK);
        for (int other = 0; other < size; other++)
            EXPECT(numbers[other] == number - (uint64_t)rank + (uint64_t)other);
    }
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    /* One rank comes with another size: all are told, and the next call works. */
    EXPECT(llcl_allgather_bytes(context, mine, rank == size - 1 ? 4 : 8, all) == LLCL_ERR_INVALID);
    /* One rank comes late: the others run into their limit, and go on with the same call. */
    if (rank != 0)
        EXPECT(llcl_allgather_bytes_within(context, mine, 8, all, 10000000) == LLCL_ERR_TIMEOUT);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(llcl_allgather_bytes_within(context, mine, 8, all, -1) == LLCL_OK);
    EXPECT(all[8 * (size - 1)] == size);
    free(mine);
    free(all);
}

static void memory(llcl_context_t *context)
{
    llcl_region_t *region;
    llcl_remote_t all[RANKS];
    int near = 0;
    EXPECT(llcl_region_allocate_shared(context, 8 * RANKS, &region, all) == LLCL_OK);
    for (uint32_t peer = 0; peer < (uint32_t)size; peer++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        uint64_t value = (uint64_t)rank + 1;
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        EXPECT(llcl_query_peer(context, peer, &info) == LLCL_OK);
        near += info.transport != LLCL_TRANSPORT_WIRE;
        EXPECT((info.transport != LLCL_TRANSPORT_WIRE) == ((int)peer / group == rank / group));
        put.peer = peer;
        put.source = llcl_local_address(&value);
        put.destination = all[peer];
        put.destination.offset += 8 * (uint64_t)rank;
        put.size = 8;
        EXPECT(llcl_write(context, &put) == LLCL_OK);
    }
    EXPECT(near == group);
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    for (int other = 0; other < size; other++)
        EXPECT(((uint64_t *)llcl_region_address(region))[other] == (uint64_t)other + 1);
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    EXPECT(llcl_region_free(region) == LLCL_OK);
}

/* The last rank is killed: the hub of its machine tells the others. */
static void death(llcl_context_t *context)
{
    uint32_t last = (uint32_t)size - 1;
    uint64_t number = 0, numbers[RANKS];
    if (rank == size - 1)
        kill(getpid(), SIGKILL);
    while (llcl_peer_alive(context, last) == LLCL_OK)
        usleep(1000);
    EXPECT(llcl_peer_alive(context, last) == LLCL_ERR_PEER_DEAD);
    EXPECT(llcl_allgather_bytes(context, &number, sizeof number, numbers) == LLCL_ERR_PEER_DEAD);
    /* The living still meet. */
    EXPECT(llcl_finalize(context) == LLCL_OK);
    printf("machines: rank %d heard of the death\n", rank);
    fflush(stdout);
    /* MPI would wait for the dead. */
    _exit(0);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int level;
    llcl_bootstrap_t start = LLCL_BOOTSTRAP_INIT;
    llcl_config_t config = LLCL_CONFIG_INIT;
    llcl_context_t *context, *second;
    const char *how = argc > 2 ? argv[2] : "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    group = argc > 1 ? atoi(argv[1]) : 1;
    start.rank = (uint32_t)rank;
    start.size = (uint32_t)size;
    start.allgather = allgather;
    start.data = &comm;
    config.bootstrap = &start;
    LLCL_CHECK(llcl_init(&config, &context));
    if (strcmp(how, "death") == 0)
        death(context);
    if (strcmp(how, "abort") == 0) {
        if (rank == size - 1)
            llcl_exit(context, 7, 500);
        for (;;)
            pause();
    }
    if (strcmp(how, "finalize") == 0) {
        MPI_Finalize();
        EXPECT(llcl_finalize(context) != LLCL_OK);
        EXPECT(strstr(llcl_last_error(), "MPI_Finalize") != NULL);
        printf("machines: %s\n", llcl_last_error());
        return 0;
    }
    gather(context);
    memory(context);
    LLCL_CHECK(llcl_context_duplicate(context, NULL, &second));
    memory(second);
    gather(second);
    LLCL_CHECK(llcl_finalize(second));
    gather(context);
    LLCL_CHECK(llcl_finalize(context));
    MPI_Finalize();
    if (rank == 0)
        printf("machines: %d ranks, %d on each machine, passed\n", size, group);
    return 0;
}
