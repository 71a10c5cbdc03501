/* Broken if this fails: when one of four ranks is killed (kill -9) while plans run, a survivor
 * hangs, is not told LLCL_ERR_PEER_DEAD within a second, gets a wrong result with LLCL_OK, cannot
 * free its plans, or can no longer work in a team without the dead one. Rounds at random moments,
 * over engines, modes and kernel copies; in some the victim dies while plans are made. Started
 * alone it drives the rounds: coll_kill [rounds [seed]]; under llcl-run it is one rank.
 * kind: alone
 * modes: auto
 * timeout: 120
 */
#include "coll.h"
#include "kill.h"

#define RANKS 4u
#define PLANS 5u

struct rank {
    llcl_context_t *context;
    uint32_t me, victim, killer;
    uint64_t seed;
    llcl_team_t *world, *survivors;
    struct coll_memory memory[MEMORY_KINDS];
    struct shared control; /* word 0: when the victim was killed */
    struct coll_run plans[PLANS];
    int started[PLANS], dead[PLANS];
    struct coll_run agreement; /* of the survivors: a sum of words that say "I know" */
    uint64_t rounds;
};

static struct coll_case nth_case(const struct rank *rank, uint32_t i)
{
    struct coll_case asked = {0};
    uint64_t dice = coll_mix(rank->seed + i);
    asked.team = rank->world;
    asked.operation = (int)(dice % OPERATIONS);
    asked.count = dice / 16 % 5 ? dice / 16 % 300 : 20000;
    asked.type = LLCL_TYPE_U16;
    asked.op = LLCL_OP_ADD;
    asked.root = coll_operations[asked.operation].rooted ? (uint32_t)(dice >> 32) % RANKS : 0;
    asked.seed = dice >> 40;
    return asked;
}

/* Whether the time in which a death has to be told is over. */
static int too_late(struct rank *rank)
{
    uint64_t killed = word_get(rank->control.words);
    return killed && now_ns() > (int64_t)killed + KILL_PATIENCE;
}

static llcl_status_t wait_for(struct rank *rank, struct coll_run *run)
{
    int64_t give_up = now_ns() + 8 * SECOND;
    llcl_status_t status;
    do {
        status = rank->rounds % 2 ? llcl_coll_test(run->plan) : llcl_coll_wait(run->plan, 20000000);
        if (status == LLCL_RETRY_BUSY)
            sched_yield();
        if (status > 0 || status == LLCL_ERR_TIMEOUT)
            if (too_late(rank) || now_ns() > give_up)
                test_fail(__FILE__, __LINE__, "long after the death a round is still open");
    } while (status > 0 || status == LLCL_ERR_TIMEOUT);
    return status;
}

static int is_dead(llcl_status_t status)
{
    if (status != LLCL_ERR_PEER_DEAD)
        CHECK_OK(status);
    return status == LLCL_ERR_PEER_DEAD;
}

/* A round of all plans of the world; how many of them are dead. */
static uint32_t all_plans(struct rank *rank)
{
    uint32_t i, dead = 0;
    for (i = 0; i < PLANS; i++) {
        struct coll_run *run = &rank->plans[(i + rank->me) % PLANS];
        coll_fill(run);
        rank->started[(i + rank->me) % PLANS] = !is_dead(llcl_coll_start(run->plan));
    }
    for (i = 0; i < PLANS; i++) {
        if (rank->started[i] && !is_dead(wait_for(rank, &rank->plans[i])))
            coll_verify(&rank->plans[i]);
        else
            dead++;
    }
    rank->rounds++;
    return dead;
}

/* Plans that are made, run once and freed; whether one of them could not be. */
static uint32_t one_after_the_other(struct rank *rank)
{
    struct coll_run run;
    struct coll_case asked = nth_case(rank, (uint32_t)rank->rounds++);
    struct coll_memory *memory = &rank->memory[rank->rounds % MEMORY_KINDS];
    size_t used = memory->used;
    uint32_t dead = (uint32_t)is_dead(coll_make(&run, &asked, memory, memory));
    if (!dead) {
        coll_fill(&run);
        dead = (uint32_t)is_dead(llcl_coll_start(run.plan));
        if (!dead && !(dead = (uint32_t)is_dead(wait_for(rank, &run))))
            coll_verify(&run);
        CHECK_OK(llcl_coll_free(run.plan));
    }
    coll_forget(&run);
    memory->used = used;
    return dead;
}

/* How many survivors know of the death: told by all of them to all of them, by a plan of theirs. */
static uint64_t agree(struct rank *rank, uint64_t known)
{
    struct coll_run *run = &rank->agreement;
    uint64_t sum;
    memcpy(coll_bytes(&run->send), &known, sizeof known);
    CHECK_OK(llcl_coll_start(run->plan));
    CHECK_OK(llcl_coll_wait(run->plan, 9 * SECOND));
    memcpy(&sum, coll_bytes(&run->receive), sizeof sum);
    CHECK(sum <= RANKS - 1);
    return sum;
}

static int makes_plans(const struct rank *rank)
{
    return rank->seed / RANKS % 4 == 0;
}

/* Another survivor may have told the plans first; the kernel tells everybody soon. */
static void hears_of_the_death(const struct rank *rank)
{
    int64_t end = now_ns() + KILL_PATIENCE;
    while (llcl_peer_alive(rank->context, rank->victim) == LLCL_OK && now_ns() < end)
        usleep(200);
    CHECK_STATUS(llcl_peer_alive(rank->context, rank->victim), LLCL_ERR_PEER_DEAD);
}

/* The plan may accept rounds until this rank has marked the peer as dead. Such a round fails,
 * too. */
static void fails_soon(struct rank *rank, struct coll_run *run)
{
    int64_t end = now_ns() + KILL_PATIENCE;
    llcl_status_t status;
    do {
        status = llcl_coll_start(run->plan);
        if (status == LLCL_OK)
            status = wait_for(rank, run);
    } while (status == LLCL_OK && now_ns() < end);
    CHECK_STATUS(status, LLCL_ERR_PEER_DEAD);
}

/* Until all survivors know that one is dead; how long this took since the kill. */
static int64_t survive(struct rank *rank)
{
    int64_t known = 0;
    uint32_t dead = 0, i;
    do {
        uint32_t now = makes_plans(rank) ? one_after_the_other(rank) : all_plans(rank);
        CHECK(now >= dead);
        dead = now;
        if (dead && !known)
            known = now_ns();
    } while (agree(rank, dead > 0) < RANKS - 1);
    CHECK(word_reaches(rank->control.words, 1, KILL_PATIENCE));
    hears_of_the_death(rank);
    for (i = 0; i < PLANS && !makes_plans(rank); i++) {
        fails_soon(rank, &rank->plans[i]);
        coll_drop(&rank->plans[i]);
    }
    return known - (int64_t)word_get(rank->control.words);
}

/* What the world can no longer do, the survivors can. */
static void afterwards(struct rank *rank)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    llcl_team_t *team = NULL;
    struct coll_case asked = nth_case(rank, 77);
    uint32_t i;
    params.team = rank->world;
    CHECK_STATUS(llcl_barrier_init(&params, &plan), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_team_split(rank->world, 0, 0, &team), LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_team_barrier(rank->world), LLCL_ERR_PEER_DEAD);
    CHECK(plan == NULL && team == NULL);
    for (i = 0; i < 20; i++)
        CHECK_EQUAL(agree(rank, 1), RANKS - 1);
    asked.team = rank->survivors;
    asked.root = 0;
    CHECK_OK(coll_whole(&asked, &rank->memory[ALLOCATED], 20));
    CHECK_OK(llcl_team_split(rank->survivors, 0, 0, &team));
    CHECK_OK(llcl_team_barrier(team));
    CHECK_OK(llcl_team_free(team));
    coll_drop(&rank->agreement);
}

static void begin(struct rank *rank, llcl_context_t *context)
{
    struct coll_case asked = {0};
    uint32_t i;
    int kind;
    rank->context = context;
    rank->me = llcl_rank(context);
    rank->seed = kill_seed();
    rank->victim = (uint32_t)(rank->seed % RANKS);
    rank->killer = (rank->victim + 1 + (uint32_t)(rank->seed / RANKS % 3)) % RANKS;
    CHECK_EQUAL(llcl_size(context), RANKS);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        coll_memory_make(context, kind, (size_t)1 << 21, &rank->memory[kind]);
    share(context, ALLOCATED, 64, &rank->control);
    rank->world = coll_world(context);
    CHECK_OK(llcl_team_split(rank->world, rank->me == rank->victim ? LLCL_TEAM_NONE : 0, 0,
                             &rank->survivors));
    for (i = 0; i < PLANS && !makes_plans(rank); i++) {
        struct coll_case nth = nth_case(rank, i);
        struct coll_memory *memory = &rank->memory[(rank->seed >> i) % 4 == 0];
        CHECK_OK(coll_make(&rank->plans[i], &nth, memory, memory));
    }
    if (rank->me == rank->victim)
        return;
    asked.team = rank->survivors;
    asked.operation = ALLREDUCE;
    asked.count = 1;
    asked.type = LLCL_TYPE_U64;
    asked.op = LLCL_OP_ADD;
    CHECK_OK(coll_make(&rank->agreement, &asked, &rank->memory[ALLOCATED], &rank->memory[ALLOCATED]));
}

static void run(llcl_context_t *context)
{
    struct rank *rank = calloc(1, sizeof *rank);
    struct killing killing;
    pthread_t killer;
    int64_t known, end;
    CHECK(rank != NULL);
    begin(rank, context);
    fence(context);
    if (rank->me == rank->victim) {
        for (end = now_ns() + 8 * SECOND; now_ns() < end;)
            CHECK_EQUAL(makes_plans(rank) ? one_after_the_other(rank) : all_plans(rank), 0);
        test_fail(__FILE__, __LINE__, "the victim was not killed");
    }
    killing = (struct killing){context, rank->victim, 0, &rank->control};
    killing.at = now_ns() + (int64_t)(rank->seed / 16 % 30000) * 1000;
    if (rank->me == rank->killer)
        CHECK(pthread_create(&killer, NULL, kill_and_tell, &killing) == 0);
    known = survive(rank);
    if (rank->me == rank->killer)
        CHECK(pthread_join(killer, NULL) == 0);
    afterwards(rank);
    CHECK_OK(test_finalize(context));
    printf("survivor %u: gap %lld rounds %llu\n", rank->me, (long long)known / 1000,
           (unsigned long long)rank->rounds);
    fflush(stdout);
}

static void set_up(int round)
{
    static const char *const modes[] = {"auto", "offload", "direct"};
    setenv("LLCL_EXECUTION", modes[round / 2 % 3], 1);
    setenv("LLCL_COLL_ENGINE", round % 2 ? "thread" : "offload", 1);
    setenv("LLCL_CMA", round % 5 == 4 ? "off" : "on", 1);
}

int main(int count, char **arguments)
{
    static const struct kill_plan plan = {"coll_kill", (int)RANKS, 24, set_up, run, 1};
    return kill_main(&plan, count, arguments);
}
