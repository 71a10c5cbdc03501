/* Broken if this fails: a rank that leaves (as one that dies) while others are in a round leaves
 * one of them waiting, or it ends there with another status than LLCL_ERR_PEER_DEAD; or the living
 * can't make a team, whose collectives work. The last rank leaves first, then rank 0, which over
 * several nodes have neighbours on another one.
 * ranks: 2 3
 * threads: yes
 */
#include "coll.h"

enum { COUNT = 6000 };

static uint64_t *buffer(void)
{
    uint64_t *words = calloc(COUNT, 8);
    CHECK(words != NULL);
    return words;
}

static llcl_coll_t *plan_of(llcl_team_t *team, int broadcast, uint32_t root, uint64_t *in, uint64_t *out)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    params.send = llcl_local_address(in);
    params.receive = llcl_local_address(out);
    params.count = COUNT;
    params.type = LLCL_TYPE_U64;
    params.root = root;
    params.op = LLCL_OP_ADD;
    CHECK_OK(broadcast ? llcl_broadcast_init(&params, &plan) : llcl_allreduce_init(&params, &plan));
    return plan;
}

/* Rounds in which everybody of the team takes part. */
static void works(llcl_team_t *team, llcl_coll_t *plan, uint64_t *in, uint64_t *out)
{
    uint64_t round, i, expected = 0;
    uint32_t rank;
    for (rank = 0; rank < llcl_team_size(team); rank++)
        expected += llcl_team_peer(team, rank);
    for (round = 1; round <= 3; round++) {
        for (i = 0; i < COUNT; i++)
            in[i] = (llcl_team_peer(team, llcl_team_rank(team)) + i) * round;
        CHECK_OK(llcl_coll_start(plan));
        CHECK_OK(llcl_coll_wait(plan, -1));
        for (i = 0; i < COUNT; i += 7)
            CHECK_EQUAL(out[i], (expected + i * llcl_team_size(team)) * round);
    }
}

/* A round without the leaver: begun before this rank has heard of it, or refused. */
static void ends(llcl_coll_t *plan)
{
    llcl_status_t status = llcl_coll_start(plan);
    if (status == LLCL_OK)
        status = llcl_coll_wait(plan, -1);
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
}

/* What the leaver has put to the others may be on its way when it has its own results, and is lost
 * if it leaves then. */
static void all_have_results(llcl_context_t *context, struct shared *words, uint32_t leaver, uint32_t others)
{
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    if (llcl_rank(context) == leaver) {
        CHECK_OK(llcl_wait_word(context, words->words, others, TEST_PATIENCE_NS));
        return;
    }
    add.peer = leaver;
    add.target = remote_at(words, leaver, 0);
    add.operand = 1;
    CHECK_OK(llcl_fetch_add(context, &add));
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), leaver, living[16], n = size, i, turn;
    llcl_team_t *team = coll_world(context);
    struct shared words;
    share(context, ALLOCATED, 64, &words);
    for (i = 0; i < size; i++)
        living[i] = i;
    for (turn = 0; turn < 2 && n > 1; turn++) {
        uint64_t *in = buffer(), *out = buffer(), *other = buffer();
        llcl_coll_t *sum, *from, *plan;
        leaver = living[turn == 0 ? n - 1 : 0];
        sum = plan_of(team, 0, 0, in, out);
        from = plan_of(team, 1, llcl_team_find(team, leaver), in, other);
        works(team, sum, in, out);
        all_have_results(context, &words, leaver, n - 1);
        if (me == leaver) {
            /* No other rank comes to its end. */
            CHECK_STATUS(llcl_finalize_within(context, 2000000), LLCL_ERR_TIMEOUT);
            test_finalized = 1;
            free(in);
            free(out);
            free(other);
            free(words.remote);
            return;
        }
        ends(sum);
        ends(from);
        CHECK_STATUS(llcl_team_barrier(team), LLCL_ERR_PEER_DEAD);
        CHECK_OK(llcl_coll_free(sum));
        CHECK_OK(llcl_coll_free(from));
        for (i = 0, n--; i < n; i++)
            living[i] = turn == 0 ? i : i + 1;
        CHECK_OK(llcl_team_create(context, living, n, &team));
        plan = plan_of(team, 0, 0, in, out);
        works(team, plan, in, out);
        CHECK_OK(llcl_coll_free(plan));
        CHECK_OK(llcl_team_barrier(team));
        free(in);
        free(out);
        free(other);
    }
    free(words.remote);
}

TEST_MAIN(run)
