/* Broken if this fails: memory of a peer behind a network is mapped, or memory of a rank on this
 * node is not: the wire would work only in tests, where ranks are threads of one machine.
 *
 * The memory file of each rank begins with its control area. Its first page is mapped once by the
 * rank itself, and once by each neighbour that has contacted it; regions are mapped likewise. Where
 * ranks are processes, each maps all of its node.
 * ranks: 2 3
 * threads: yes
 */
#include "am.h"

/* With ThreadSanitizer a range of a file is mapped once for all ranks of the process
 * (scripts/tsan_map.c). */
#ifdef __SANITIZE_THREAD__
#define COUNTS 0
#else
#define COUNTS 1
#endif

struct mapped {
    unsigned long inode, offset;
    uint32_t times;
};

/* Reads which pages of memory files are mapped, and how often each. */
static uint32_t read_maps(struct mapped *found, uint32_t most)
{
    char line[512];
    uint32_t count = 0, i;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end, offset, inode;
        if (!strstr(line, "/memfd:llcl ") ||
            sscanf(line, "%lx-%lx %*s %lx %*s %lu", &begin, &end, &offset, &inode) != 4)
            continue;
        for (i = 0; i < count; i++)
            if (found[i].inode == inode && found[i].offset == offset)
                break;
        CHECK(i < most);
        if (i == count)
            found[count++] = (struct mapped){inode, offset, 0};
        found[i].times++;
    }
    fclose(maps);
    return count;
}

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

/* A write, a read, an atomic, a message each way. */
static void use(llcl_context_t *context, struct shared *shared, uint32_t peer)
{
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    llcl_am_params_t am = am_to(peer, 1, NULL, 0);
    uint64_t me = llcl_rank(context), value = 0, old = 0;
    write.peer = read.peer = add.peer = peer;
    write.destination = read.source = remote_at(shared, peer, 8 * me);
    write.value = me + 1;
    write.size = read.size = 8;
    CHECK_OK(llcl_write_value(context, &write));
    read.destination = llcl_local_address(&value);
    CHECK_OK(llcl_read(context, &read));
    CHECK_EQUAL(value, me + 1);
    add.target = remote_at(shared, peer, 8 * me);
    add.operand = 5;
    add.result = &old;
    CHECK_OK(llcl_fetch_add(context, &add));
    CHECK_EQUAL(old, me + 1);
    CHECK_OK(llcl_am(context, &am));
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer, near = 0, count, i, begun = 0;
    static uint64_t handled;
    struct mapped found[512];
    struct shared shared;
    am_register(context, 1, handle, &handled);
    share(context, ALLOCATED, 4096, &shared);
    for (peer = 0; peer < size; peer++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        CHECK_OK(llcl_query_peer(context, peer, &info));
        near += info.transport != LLCL_TRANSPORT_WIRE;
        if (info.transport == LLCL_TRANSPORT_WIRE) {
            CHECK(llcl_remote_pointer(context, peer, remote_at(&shared, peer, 0), 8) == NULL);
            CHECK(strstr(llcl_last_error(), "which a network leads to, is not mapped"));
        }
        use(context, &shared, peer);
    }
    fence(context);
    AWAIT(&handled, test_in_threads() ? size * size : size);
    if (COUNTS && (me == 0 || !test_in_threads())) {
        /* A process sees its own mappings only. */
        uint32_t seen = test_in_threads() ? size : near;
        near = test_in_threads() ? near : 1;
        count = read_maps(found, 512);
        for (i = 0; i < count; i++) {
            /* All nodes of a set-up have as many ranks. */
            CHECK(found[i].times <= near);
            begun += found[i].offset == 0 && found[i].times == near;
        }
        CHECK_EQUAL(begun, seen);
    }
    share_end(context, &shared);
}

TEST_MAIN(run)
