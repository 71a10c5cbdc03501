/* Pointer chasing: a list runs through the memory of all ranks, and each link names the place of
 * the next one. The callback of a read posts the next read, so the program can do something else
 * meanwhile. Compared with MPI_Get and MPI_Win_flush.
 * Run: llcl-run -n 4 ./chase [links]; or, with both ways and their times: mpirun -n 4 ./chase_mpi
 *      [links] */
#include "world.h"

struct link {
    llcl_remote_t next;
    uint32_t peer, index; /* the place of the next link */
};

struct chase {
    llcl_context_t *context;
    struct link link; /* the last link read */
    size_t left;
    uint64_t sum, done; /* the sum of the links' numbers; 1 when the list has ended */
};

static void read_next(struct chase *chase);

static void arrived(void *data, llcl_status_t status)
{
    struct chase *chase = data;
    LLCL_CHECK(status);
    chase->sum += chase->link.index;
    if (--chase->left > 0)
        read_next(chase);
}

/* A callback must not block, so it uses a try function. It must not repeat a refused call either:
 * the library may wait for the callback to return. With LLCL_FLAG_PARK the library keeps a read for
 * which there is no room, and posts it later. The last read sets the word on which the main thread
 * sleeps. */
static void read_next(struct chase *chase)
{
    llcl_read_params_t read = {.peer = chase->link.peer, .source = chase->link.next, .size = sizeof chase->link,
        .destination = llcl_local_address(&chase->link), .flags = LLCL_FLAG_PARK,
        .on_complete = chase->left > 1 ? llcl_callback(arrived, chase) : llcl_store_on(&chase->done)};
    LLCL_CHECK(llcl_try_read_async(chase->context, &read));
}

int main(int argc, char **argv)
{
    llcl_context_t *context = begin(&argc, &argv, (llcl_config_t)LLCL_CONFIG_INIT);
    uint32_t rank = llcl_rank(context), size = llcl_size(context);
    size_t links = argument(argc, argv, 1, 10000);
    llcl_remote_t *everybody = zeroed(size, sizeof *everybody);
    llcl_region_t *region;
    LLCL_CHECK(llcl_region_allocate_shared(context, links * sizeof(struct link), &region, everybody));
    struct link *mine = llcl_region_address(region);
    /* Link i of a rank points to link 7919 i + 1 of the next rank, so the list jumps all over the
     * memory. */
    for (size_t i = 0; i < links; i++) {
        mine[i].peer = (rank + 1) % size;
        mine[i].index = (uint32_t)((7919 * i + 1) % links);
        mine[i].next = llcl_at(everybody[mine[i].peer], mine[i].index * sizeof *mine);
    }
    uint64_t expected = 0, at = 0;
    for (size_t i = 0; i < links; i++)
        expected += at = (7919 * at + 1) % links;

    /* Contacts all peers beforehand, since a callback cannot wait for the first contact. */
    LLCL_CHECK(llcl_connect(context, NULL, 0));
    LLCL_CHECK(llcl_barrier(context));
    struct chase chase = {.context = context, .left = links, .link = {everybody[rank], rank, 0}};
    double start = seconds();
    read_next(&chase);
    LLCL_CHECK(llcl_wait_word(context, &chase.done, 1, -1));
    double took = (seconds() - start) / (double)links;
    const char *wrong = chase.sum + chase.link.index == expected ? NULL : "another sum by the library";
    LLCL_CHECK(llcl_barrier(context));
    if (rank == 0)
        printf("chase: %" PRIu32 " ranks, a link takes %.1f ns by the library", size, 1e9 * took);
#ifdef WITH_MPI
    MPI_Win window;
    struct link link = chase.link;
    struct link *theirs;
    MPI_Win_allocate((MPI_Aint)(links * sizeof *mine), sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &window);
    memcpy(theirs, mine, links * sizeof *mine);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Barrier(MPI_COMM_WORLD);
    link.peer = rank, link.index = 0;
    uint64_t sum = 0;
    start = seconds();
    for (size_t i = 0; i < links; i++) {
        int peer = (int)link.peer;
        MPI_Get(&link, sizeof link, MPI_BYTE, peer, link.index, sizeof link, MPI_BYTE, window);
        MPI_Win_flush(peer, window);
        sum += link.index;
    }
    double by_mpi = (seconds() - start) / (double)links;
    wrong = sum == expected ? wrong : "another sum by MPI";
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    if (rank == 0)
        printf(", %.1f ns by MPI, ratio %.2f", 1e9 * by_mpi, took / by_mpi);
#endif
    if (rank == 0)
        printf("\n");
    free(everybody);
    return end(context, wrong);
}
