/* Broken if this fails: a random mixture of collectives of all kinds, sizes, algorithms, engines
 * and memories, several plans under way at once in several teams, made and freed all the time,
 * brings a wrong result or locks up. Prints its seed; LLCL_TEST_SEED repeats a run, LLCL_TEST_MS
 * sets its length.
 * ranks: 3 5
 * modes: auto offload direct
 * cma: on off
 * threads: 3
 * timeout: 60
 */
#include "coll.h"

#define PLANS 10u
#define TEAMS 4u

struct soak {
    llcl_context_t *context;
    uint32_t me;
    llcl_team_t *teams[TEAMS]; /* all; by parity; without one; reversed */
    struct coll_memory memory[MEMORY_KINDS][PLANS];
    struct coll_run runs[PLANS];
    int made[PLANS];
    uint64_t shared, own; /* random numbers: the same at every rank; this rank's */
    uint64_t plans, rounds;
};

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct coll_case random_case(llcl_team_t *team, uint64_t dice)
{
    static const uint32_t types[] = {LLCL_TYPE_I8, LLCL_TYPE_I32, LLCL_TYPE_U64, LLCL_TYPE_F32,
                                     LLCL_TYPE_F64, LLCL_TYPE_U16};
    static const uint32_t ops[] = {LLCL_OP_ADD, LLCL_OP_MIN, LLCL_OP_PROD, LLCL_OP_MAX};
    struct coll_case asked = {0};
    const struct coll_operation *operation;
    uint32_t names = 0, name;
    asked.team = team;
    asked.operation = (int)(dice % OPERATIONS);
    operation = &coll_operations[asked.operation];
    asked.varied = operation->has_varied && dice >> 8 & 1;
    asked.in_place = asked.operation > BROADCAST && (dice >> 9) % 3 == 0;
    asked.type = types[(dice >> 12) % 6];
    asked.op = ops[(dice >> 16) % 4];
    asked.engine = (uint32_t)((dice >> 20) % 3);
    asked.count = (dice >> 24) % 4 == 0 ? (dice >> 26) % 3 : (dice >> 26) % 3 ? (dice >> 30) % 200
                                                                               : (dice >> 30) % 3000;
    asked.seed = dice >> 32;
    while (operation->algorithms[names])
        names++;
    name = (uint32_t)((dice >> 40) % (2 * names));
    asked.algorithm = name < names ? operation->algorithms[name] : NULL;
    if (team)
        asked.root = operation->rooted ? (uint32_t)(dice >> 48) % llcl_team_size(team) : 0;
    if (operation->combines && (dice >> 60) % 4 == 0) {
        asked.op = LLCL_OP_USER;
        asked.type = LLCL_TYPE_U64;
    }
    return asked;
}

/* All ranks come by in the same order; those of the team make the plan. */
static void make(struct soak *soak, uint32_t place)
{
    llcl_team_t *team = soak->teams[random_next(&soak->shared) % TEAMS];
    uint64_t dice = coll_mix(random_next(&soak->shared));
    int kind = (int)(random_next(&soak->own) % MEMORY_KINDS);
    struct coll_memory *send = &soak->memory[kind][place], *receive;
    struct coll_case asked = random_case(team, dice);
    llcl_status_t status;
    receive = &soak->memory[random_next(&soak->own) % MEMORY_KINDS][place];
    soak->made[place] = 0;
    if (!team)
        return;
    send->used = receive->used = 0;
    status = coll_make(&soak->runs[place], &asked, send, receive);
    if (status == LLCL_ERR_UNSUPPORTED && asked.algorithm) {
        coll_forget(&soak->runs[place]);
        asked.algorithm = NULL;
        send->used = receive->used = 0;
        status = coll_make(&soak->runs[place], &asked, send, receive);
    }
    CHECK_OK(status);
    soak->made[place] = 1;
    soak->plans++;
}

/* Some rounds of all plans: started in one order, ended in another, each rank in its own. */
static void some_rounds(struct soak *soak, unsigned rounds)
{
    uint32_t i, shift, step;
    for (; rounds > 0; rounds--) {
        shift = (uint32_t)random_next(&soak->own) % PLANS;
        step = random_next(&soak->own) % 2 ? 3 : 7;
        for (i = 0; i < PLANS; i++)
            if (soak->made[(shift + i * step) % PLANS])
                coll_start(&soak->runs[(shift + i * step) % PLANS]);
        shift = (uint32_t)random_next(&soak->own) % PLANS;
        for (i = 0; i < PLANS; i++) {
            struct coll_run *run = &soak->runs[(shift + i * 9) % PLANS];
            if (!soak->made[(shift + i * 9) % PLANS])
                continue;
            /* Some look now and then, some wait, some sleep first. */
            if (random_next(&soak->own) % 8 == 0)
                usleep(50);
            if (random_next(&soak->own) % 4 == 0) {
                while (llcl_coll_test(run->plan) == LLCL_RETRY_BUSY)
                    sched_yield();
                coll_verify(run);
            } else {
                coll_finish(run);
            }
            soak->rounds++;
        }
    }
}

static void begin(struct soak *soak, llcl_context_t *context)
{
    uint64_t seed = number_from("LLCL_TEST_SEED", (uint64_t)now_ns() / 1000), seeds[COLL_MOST];
    uint32_t ranks = llcl_size(context), place;
    int kind;
    soak->context = context;
    soak->me = llcl_rank(context);
    CHECK_OK(llcl_allgather_bytes(context, &seed, sizeof seed, seeds));
    if (soak->me == 0) {
        printf("seed %llu\n", (unsigned long long)seeds[0]);
        fflush(stdout);
    }
    soak->shared = coll_mix(seeds[0]) | 1;
    soak->own = coll_mix(seeds[0] + 1 + soak->me) | 1;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        for (place = 0; place < PLANS; place++)
            coll_memory_make(context, kind, 2 * (3000 * 8 + 64) * (COLL_MOST / 2),
                             &soak->memory[kind][place]);
    soak->teams[0] = coll_world(context);
    CHECK_OK(llcl_team_split(soak->teams[0], soak->me % 2, 0, &soak->teams[1]));
    CHECK_OK(llcl_team_split(soak->teams[0], soak->me == seeds[0] % ranks ? LLCL_TEAM_NONE : 3, 0,
                             &soak->teams[2]));
    CHECK_OK(llcl_team_split(soak->teams[0], 0, ranks - soak->me, &soak->teams[3]));
}

static void run(llcl_context_t *context)
{
    struct soak *soak = calloc(1, sizeof *soak);
    int64_t end = now_ns() + (int64_t)number_from("LLCL_TEST_MS", 600) * 1000000;
    uint64_t over = 0, all[COLL_MOST];
    uint32_t place;
    int kind;
    CHECK(soak != NULL);
    begin(soak, context);
    for (place = 0; place < PLANS; place++)
        make(soak, place);
    while (!over) {
        some_rounds(soak, 1 + (unsigned)(random_next(&soak->shared) % 4));
        for (place = 0; place < PLANS; place++)
            if (random_next(&soak->shared) % 3 == 0) {
                if (soak->made[place])
                    coll_drop(&soak->runs[place]);
                make(soak, place);
            }
        over = now_ns() > end;
        CHECK_OK(llcl_allgather_bytes(context, &over, sizeof over, all));
        over = all[0];
    }
    for (place = 0; place < PLANS; place++)
        if (soak->made[place])
            coll_drop(&soak->runs[place]);
    printf("rank %u: %llu plans, %llu rounds\n", soak->me, (unsigned long long)soak->plans,
           (unsigned long long)soak->rounds);
    fence(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        for (place = 0; place < PLANS; place++)
            region_drop(&soak->memory[kind][place].shared);
    free(soak);
}

int main(void)
{
    coll_default("LLCL_COLL_SEGMENT", "2048");
    return test_main(run, NULL);
}
