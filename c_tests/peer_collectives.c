/* Broken if this fails: a team over ranks that share no memory is not made, or its barrier lets a
 * rank go before all have come, or hangs; an algorithm that reads other ranks' memory is accepted
 * there, or refused without a sentence; nodes of several ranks are not made use of; or ranks of one
 * node have no collectives of their own any more.
 * ranks: 2 3
 * threads: yes
 */
#include "coll.h"

enum { ROUNDS = 50 };

/* Each rank tells the others its round before the barrier, so behind it all have told. */
static void in_step(llcl_context_t *context, llcl_team_t *team, struct shared *words)
{
    uint32_t me = llcl_rank(context), size = llcl_team_size(team), member;
    uint64_t round;
    for (round = 1; round <= ROUNDS; round++) {
        for (member = 0; member < size; member++) {
            uint32_t peer = llcl_team_peer(team, member);
            llcl_write_params_t params = {0};
            params.peer = peer;
            params.destination = remote_at(words, peer, 8 * me);
            params.source = llcl_local_address(&round);
            params.size = 8;
            CHECK_OK(llcl_write(context, &params));
        }
        CHECK_OK(llcl_team_barrier(team));
        for (member = 0; member < size; member++)
            CHECK(__atomic_load_n(&words->words[llcl_team_peer(team, member)], __ATOMIC_ACQUIRE) >= round);
    }
    CHECK_OK(llcl_team_barrier(team));
    memset(words->bytes, 0, words->size);
    CHECK_OK(llcl_team_barrier(team));
}

static int share_a_node(const uint32_t *nodes, uint32_t size)
{
    uint32_t one, other;
    for (one = 0; one < size; one++)
        for (other = 0; other < one; other++)
            if (nodes[one] == nodes[other])
                return 1;
    return 0;
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), peer, n = 0, near[64], all[64];
    uint32_t nodes[64];
    llcl_coll_info_t chosen = LLCL_COLL_INFO_INIT;
    llcl_coll_params_t pulling = {0};
    llcl_coll_t *plan = NULL;
    llcl_team_t *team = NULL;
    struct shared words;
    share(context, ALLOCATED, 8 * (size_t)size, &words);
    for (peer = 0; peer < size; peer++) {
        llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
        CHECK_OK(llcl_query_peer(context, peer, &info));
        all[size - 1 - peer] = peer;
        nodes[peer] = info.node;
        if (info.transport != LLCL_TRANSPORT_WIRE)
            near[n++] = peer;
    }
    CHECK_OK(llcl_barrier(context));
    in_step(context, coll_world(context), &words);
    CHECK_OK(llcl_team_create(context, all, size, &team));
    in_step(context, team, &words);
    pulling.team = team;
    pulling.send = llcl_region_local(words.region, 0);
    pulling.receive = llcl_region_local(words.region, 0);
    pulling.count = 1;
    pulling.type = LLCL_TYPE_U64;
    pulling.op = LLCL_OP_ADD;
    pulling.flags = LLCL_COLL_IN_PLACE;
    pulling.algorithm = "direct";
    if (n < size) {
        CHECK_STATUS(llcl_allreduce_init(&pulling, &plan), LLCL_ERR_UNSUPPORTED);
        CHECK(strstr(llcl_last_error(), "on several nodes") != NULL);
        CHECK(strstr(llcl_last_error(), "rabenseifner") != NULL && strstr(llcl_last_error(), "direct,") == NULL);
    } else {
        CHECK_OK(llcl_allreduce_init(&pulling, &plan));
        CHECK_OK(llcl_coll_free(plan));
    }
    pulling.algorithm = NULL;
    CHECK_OK(llcl_allreduce_init(&pulling, &plan));
    CHECK_OK(llcl_coll_query(plan, &chosen));
    CHECK_EQUAL(strcmp(chosen.algorithm, "two_level") == 0, n < size && share_a_node(nodes, size));
    CHECK_OK(llcl_coll_free(plan));
    CHECK_OK(llcl_team_free(team));
    fence(context);
    CHECK_OK(llcl_team_create(context, near, n, &team));
    CHECK_EQUAL(llcl_team_rank(team), me - near[0]);
    in_step(context, team, &words);
    CHECK_OK(llcl_team_free(team));
    share_end(context, &words);
}

TEST_MAIN(run)
