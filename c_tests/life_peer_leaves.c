/* Broken if this fails: a rank that ends without llcl_finalize is not dead to the others: they go
 * on writing to it, hang, or get another status than LLCL_ERR_PEER_DEAD; from llcl_connect, whose
 * list also has ranks that live, too.
 * kind: alone
 * cma: on off
 * timeout: 60 */
#include "job.h"
#include "wild.h"

static void store(llcl_context_t *context, uint32_t peer, const struct shared *target)
{
    llcl_write_value_params_t value = {0};
    value.peer = peer;
    value.destination = remote_at(target, peer, 8 * llcl_rank(context));
    value.value = 1;
    value.size = 8;
    CHECK_OK(llcl_write_value(context, &value));
}

/* The functions that name the dead rank, other than one-sided operations on words. */
static void named(llcl_context_t *context, uint32_t dead, llcl_remote_t there)
{
    uint64_t word = 0;
    uint32_t ranks[2], me = llcl_rank(context);
    llcl_peer_info_t peer = LLCL_PEER_INFO_INIT;
    llcl_atomic_info_t info = LLCL_ATOMIC_INFO_INIT;
    llcl_awaited_t awaited = LLCL_AWAITED_INIT;
    llcl_strided_params_t box = box_of_a_word(llcl_local_address(&word), there);
    llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
    llcl_context_t *second;
    llcl_team_t *team;
    CHECK_STATUS(llcl_query_peer(context, dead, &peer), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_atomic_query(context, dead, there, LLCL_OP_ADD, LLCL_TYPE_U64, &info),
                 LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_wait_word_from(context, &word, 1, TEST_PATIENCE_NS, dead), LLCL_ERR_PEER_DEAD);
    awaited.word = &word;
    awaited.at_least = 1;
    awaited.peer = dead;
    awaited.flags = LLCL_WAIT_FROM_PEER;
    CHECK_STATUS(llcl_wait_any(context, &awaited, 1, 0, TEST_PATIENCE_NS, NULL), LLCL_ERR_PEER_DEAD);
    am.peer = box.peer = dead;
    CHECK_STATUS(llcl_try_am_async(context, &am), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_am_async(context, &am), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_am(context, &am), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_write_strided(context, &box), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_read_strided(context, &box), LLCL_ERR_PEER_DEAD);
    ranks[0] = me;
    ranks[1] = dead;
    CHECK_STATUS(llcl_team_create(context, ranks, 2, &team), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_context_duplicate(context, NULL, &second), LLCL_ERR_PEER_DEAD);
}

static void run(llcl_context_t *context)
{
    struct shared allocated, used, registered, mine;
    struct wild wild = {0};
    uint32_t last = llcl_size(context) - 1, peer, both[3];
    int64_t end;
    share(context, ALLOCATED, 4096, &allocated);
    share(context, ALLOCATED, 4096, &used);
    share(context, REGISTERED, 4096, &registered);
    region_make(context, ALLOCATED, 4096, &mine);
    CHECK_OK(llcl_peer_alive(context, last));
    CHECK_STATUS(llcl_peer_alive(context, last + 1), LLCL_ERR_INVALID);
    store(context, last, &used);
    CHECK_OK(llcl_connect(context, NULL, 0));
    fence(context);
    if (llcl_rank(context) == last)
        _exit(0);
    end = now_ns() + 1000000000;
    while (llcl_peer_alive(context, last) == LLCL_OK && now_ns() < end)
        usleep(100);
    CHECK_STATUS(llcl_peer_alive(context, last), LLCL_ERR_PEER_DEAD);
    /* Also if this rank has contacted it before. */
    CHECK_STATUS(llcl_connect(context, &last, 1), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_connect(context, NULL, 0), LLCL_ERR_PEER_DEAD);
    wild.peer = last;
    wild.local = llcl_region_local(mine.region, 0);
    wild.memory = mine.words + 1;
    wild.signal = remote_at(&allocated, last, 64);
    wild.remote = remote_at(&allocated, last, 0);
    WILD_REFUSED(context, &wild, LLCL_ERR_PEER_DEAD);
    /* Also where this rank has mapped the memory. */
    wild.signal = remote_at(&used, last, 64);
    wild.remote = remote_at(&used, last, 0);
    WILD_REFUSED(context, &wild, LLCL_ERR_PEER_DEAD);
    wild.flags = LLCL_FLAG_DEFER;
    wild.remote = remote_at(&registered, last, 0);
    WILD_REFUSED(context, &wild, LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_flush(context, last), LLCL_ERR_PEER_DEAD);
    both[0] = both[2] = llcl_rank(context);
    both[1] = last;
    CHECK_STATUS(llcl_connect(context, both, 2), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_connect(context, both + 1, 2), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 0, NULL), LLCL_ERR_PEER_DEAD);
    named(context, last, remote_at(&used, last, 0));
    /* The others are as alive as before. */
    for (peer = 0; peer < last; peer++) {
        CHECK_OK(llcl_peer_alive(context, peer));
        store(context, peer, &registered);
    }
    CHECK_OK(test_finalize(context));
    printf("rank %u has seen it\n", (unsigned)test_rank);
}

/* The job fails in any case: a rank has ended without llcl_finalize. What counts is what the others
 * say. */
int main(int argc, char **argv)
{
    static const int sizes[] = {2, 3, 5};
    size_t i;
    (void)argc;
    if (getenv("LLCL_RANK"))
        return test_main(run, NULL);
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char options[64];
        const char *from;
        struct end end;
        int seen = 0;
        snprintf(options, sizeof options, "--keep-going -n %d", sizes[i]);
        end = job(options, argv[0], "", "");
        EXPECT(end, 1, "ended with exit code 0, without llcl_finalize\n");
        for (from = end.said; (from = strstr(from, "has seen it\n")) != NULL; from++)
            seen++;
        if (seen != sizes[i] - 1)
            EXPECT(end, -1, "as many ranks that have seen it as there are others");
    }
    return 0;
}
