/* MPI has started ranks on several machines. Each machine has a hub, and the hubs work together as
 * one: ranks of all machines gather, meet, duplicate contexts and hear of deaths. Ranks of one
 * machine share memory.
 *
 *   machines GROUP           GROUP ranks on each machine
 *   machines GROUP death     the last rank is killed, and all others hear of it (*)
 *   machines GROUP transfer  the last rank is killed while all others read and write its memory
 *                            in large pieces: that ends with a status, and the others read each
 *                            other's memory as before (*)
 *   machines GROUP member    the last rank is killed in the middle of a round of a collective; the
 *                            others' round ends, and they go on in a team without the dead (*)
 *   machines GROUP leader    as member, and the dead rank is the leader of its node: it sends to
 *                            other nodes for the rank beside it (*)
 *   machines GROUP hub       the lowest rank of the second machine, which runs the hub there, is
 *                            killed in the middle of a round: the ranks beside it hear of it within
 *                            a second; ranks of other machines are told only if MPI reports deaths
 *                            (mpirun --with-ft ulfm of Open MPI 5), otherwise they wait for the
 *                            launcher to end the job
 *   machines GROUP abort     the last rank ends the job; no other rank ends by itself
 *   machines GROUP finalize  MPI_Finalize comes before llcl_finalize, which must say so
 *
 * (*) The launcher must let the job go on. */
#include "expect.h"
#include <llcl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 100000, ROUNDS = 100, RANKS = 16, WORDS = 20000, LARGE = 16 << 20 };
#define PATIENCE INT64_C(10000000000)

static int size, group;

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
    /* One rank passes another size: the call fails at all ranks, and the next one works. */
    EXPECT(llcl_allgather_bytes(context, mine, rank == size - 1 ? 4 : 8, all) == LLCL_ERR_INVALID);
    /* Rank 0 calls late: the others time out, and repeat the call. */
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
    /* MPI_Finalize would wait for the dead rank. */
    _exit(0);
}

/* Reads or writes LARGE bytes of a peer. */
static llcl_status_t move(llcl_context_t *context, uint32_t peer, llcl_remote_t remote, unsigned char *bytes, int write)
{
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    get.peer = put.peer = peer;
    get.source = put.destination = remote;
    get.destination = put.source = llcl_local_address(bytes);
    get.size = put.size = LARGE;
    return write ? llcl_write(context, &put) : llcl_read(context, &get);
}

/* The last rank is killed in the middle of large reads and writes of its memory: ranks with an odd
 * number write. */
static void transfer(llcl_context_t *context)
{
    uint32_t last = (uint32_t)size - 1, living[RANKS], peer;
    unsigned char *bytes = malloc(LARGE);
    llcl_region_t *region;
    llcl_remote_t all[RANKS];
    llcl_team_t *team = NULL;
    llcl_status_t status;
    int moved = 0;
    EXPECT(llcl_region_allocate_shared(context, LARGE, &region, all) == LLCL_OK);
    memset(llcl_region_address(region), rank + 1, LARGE);
    if (rank != (int)last)
        EXPECT(move(context, last, all[last], bytes, rank % 2) == LLCL_OK);
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    if (rank == (int)last) {
        usleep(200000);
        kill(getpid(), SIGKILL);
    }
    do {
        status = move(context, last, all[last], bytes, rank % 2);
        moved++;
    } while (status == LLCL_OK);
    EXPECT(status == LLCL_ERR_PEER_DEAD);
    for (peer = 0; peer < last; peer++) {
        living[peer] = peer;
        EXPECT(move(context, peer, all[peer], bytes, 0) == LLCL_OK);
        EXPECT(bytes[0] == peer + 1 && bytes[LARGE - 1] == peer + 1);
    }
    /* The others have read this rank's memory. */
    EXPECT(llcl_team_create(context, living, last, &team) == LLCL_OK);
    EXPECT(llcl_team_barrier(team) == LLCL_OK);
    EXPECT(llcl_finalize(context) == LLCL_OK);
    printf("machines: rank %d went on without rank %u, after %d transfers\n", rank, last, moved);
    fflush(stdout);
    _exit(0);
}

static llcl_coll_t *sum_of(llcl_team_t *team, uint64_t *in, uint64_t *out)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    params.send = llcl_local_address(in);
    params.receive = llcl_local_address(out);
    params.count = WORDS;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    EXPECT(llcl_allreduce_init(&params, &plan) == LLCL_OK);
    return plan;
}

/* Runs a round, and checks the result if the round succeeds. */
static llcl_status_t add(llcl_team_t *team, llcl_coll_t *plan, uint64_t *in, uint64_t *out)
{
    uint64_t at, expected = 0;
    llcl_status_t status;
    for (at = 0; at < llcl_team_size(team); at++)
        expected += llcl_team_peer(team, (uint32_t)at) + 1;
    for (at = 0; at < WORDS; at++)
        in[at] = ((uint64_t)rank + 1) * (at + 1);
    status = llcl_coll_start(plan);
    if (status == LLCL_OK)
        status = llcl_coll_wait(plan, PATIENCE);
    for (at = 0; at < WORDS && status == LLCL_OK; at++)
        EXPECT(out[at] == expected * (at + 1));
    return status;
}

/* The last rank is killed inside a round: that round, or the next, fails at every other rank. The
 * leader of a node is the first of its ranks in the team, so `leader` lists the ranks backwards. */
static void in_a_round(llcl_context_t *context, int leader)
{
    static uint64_t in[WORDS], out[WORDS];
    uint32_t victim = (uint32_t)size - 1, all[RANKS], living[RANKS], peer;
    llcl_team_t *team = NULL;
    llcl_coll_t *plan;
    llcl_status_t status;
    for (peer = 0; peer < (uint32_t)size; peer++) {
        all[peer] = leader ? victim - peer : peer;
        living[peer] = peer;
    }
    EXPECT(llcl_team_create(context, all, (uint32_t)size, &team) == LLCL_OK);
    plan = sum_of(team, in, out);
    for (int round = 0; round < 5; round++)
        EXPECT(add(team, plan, in, out) == LLCL_OK);
    /* A message that the victim has put but not sent is lost with it: all ranks end the rounds
     * above before it dies. */
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    if (rank == (int)victim) {
        EXPECT(llcl_coll_start(plan) == LLCL_OK);
        kill(getpid(), SIGKILL);
    }
    do
        status = add(team, plan, in, out);
    while (status == LLCL_OK);
    EXPECT(status == LLCL_ERR_PEER_DEAD);
    EXPECT(llcl_team_barrier(team) == LLCL_ERR_PEER_DEAD);
    EXPECT(llcl_coll_free(plan) == LLCL_OK);
    EXPECT(llcl_team_create(context, living, victim, &team) == LLCL_OK);
    plan = sum_of(team, in, out);
    for (int round = 0; round < 5; round++)
        EXPECT(add(team, plan, in, out) == LLCL_OK);
    EXPECT(llcl_coll_free(plan) == LLCL_OK);
    EXPECT(llcl_team_barrier(team) == LLCL_OK);
    EXPECT(llcl_team_free(team) == LLCL_OK);
    EXPECT(llcl_finalize(context) == LLCL_OK);
    printf("machines: rank %d went on without rank %u\n", rank, victim);
    fflush(stdout);
    _exit(0);
}

/* Rank `group` runs the hub of its machine. Without it the others there reach no rank any more. */
static void hub(llcl_context_t *context)
{
    static uint64_t in[WORDS], out[WORDS];
    llcl_team_t *team = NULL;
    llcl_coll_t *plan;
    llcl_status_t status = LLCL_OK;
    double begun;
    EXPECT(llcl_team_world(context, &team) == LLCL_OK);
    plan = sum_of(team, in, out);
    EXPECT(add(team, plan, in, out) == LLCL_OK);
    EXPECT(llcl_allgather_bytes(context, NULL, 0, NULL) == LLCL_OK);
    /* The hub has served all ranks before it dies, and the ranks beside it know when that is. */
    if (rank != group)
        MPI_Send(NULL, 0, MPI_BYTE, group, 0, MPI_COMM_WORLD);
    else {
        for (int other = 1; other < size; other++)
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int other = group + 1; other < 2 * group; other++)
            MPI_Send(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        EXPECT(llcl_coll_start(plan) == LLCL_OK);
        kill(getpid(), SIGKILL);
    }
    if (rank / group == 1)
        MPI_Recv(NULL, 0, MPI_BYTE, group, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    begun = MPI_Wtime();
    while (status == LLCL_OK)
        status = add(team, plan, in, out);
    if (rank / group != 1) {
        while (llcl_peer_alive(context, (uint32_t)group) == LLCL_OK && MPI_Wtime() - begun < 10)
            usleep(1000);
        status = llcl_peer_alive(context, (uint32_t)group);
        printf("machines: rank %d was told %s after %.2f s\n", rank,
               status == LLCL_ERR_PEER_DEAD ? "of the death" : "nothing", MPI_Wtime() - begun);
        fflush(stdout);
        _exit(0);
    }
    EXPECT(status == LLCL_ERR_PEER_DEAD && MPI_Wtime() - begun < 1);
    EXPECT(llcl_team_barrier(team) == LLCL_ERR_PEER_DEAD);
    printf("machines: rank %d heard within a second that its hub is gone\n", rank);
    fflush(stdout);
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
    if (strcmp(how, "transfer") == 0)
        transfer(context);
    if (strcmp(how, "member") == 0 || strcmp(how, "leader") == 0)
        in_a_round(context, strcmp(how, "leader") == 0);
    if (strcmp(how, "hub") == 0)
        hub(context);
    if (strcmp(how, "abort") == 0) {
        if (rank == size - 1)
            llcl_exit(context, 7, 500);
        for (;;)
            pause();
    }
    if (strcmp(how, "finalize") == 0) {
        MPI_Finalize();
        EXPECT(llcl_finalize(context) == LLCL_ERR_SYSTEM);
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
    end_mpi();
    if (rank == 0)
        printf("machines: %d ranks, %d on each machine, passed\n", size, group);
    return 0;
}
