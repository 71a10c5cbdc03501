/* Rounds of llcl-run in which one rank is killed at a random moment. A test that is started
 * alone is the driver, which starts the rounds: TEST [rounds [seed]]. Under llcl-run the test is
 * one rank. Every survivor prints "survivor RANK: NAME VALUE NAME VALUE ...". The driver prints
 * the largest of the values `gap`, and the sum of the values `skips`. A `gap` is the time in which
 * a survivor has learnt of the death. In a plan that is `prompt` it is at most a second, but for
 * MOST_LATE rounds, which a busy machine may delay. */
#ifndef KILL_H
#define KILL_H
#include "shared.h"

#include <signal.h>
#include <sys/wait.h>

#define SECOND INT64_C(1000000000)
#define MOST_LATE 1
/* After this time a survivor has not learnt of the death at all. */
#define KILL_PATIENCE (4 * SECOND)

struct kill_plan {
    const char *name;
    int ranks;
    int rounds;                /* how many, unless the command line has a number */
    void (*set_up)(int round); /* sets the environment of a round */
    void (*run)(llcl_context_t *context);
    int prompt; /* see above */
};

struct kill_result {
    long largest_gap; /* us */
    int late;         /* rounds with a gap of more than a second */
    long skips;       /* slots */
    long skipping;    /* rounds in which slots were skipped */
    char self[4096], launcher[4096];
};

/* For `set_up`: the rounds use the execution modes in turn. */
static inline void kill_modes_in_turn(int round)
{
    static const char *const modes[] = {"auto", "offload", "direct"};
    setenv("LLCL_EXECUTION", modes[round % 3], 1);
}

/* Waits until the time `at`, and kills the peer. Any thread may call it. */
static inline void kill_peer(llcl_context_t *context, uint32_t peer, int64_t at)
{
    llcl_peer_info_t info = {0};
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, peer, &info));
    CHECK(info.process > 1 && info.process != (uint32_t)getpid());
    while (now_ns() < at)
        usleep(100);
    CHECK(kill((pid_t)info.process, SIGKILL) == 0);
}

/* Of all ranks: the victim waits until it is killed, and the next rank kills it after `delay`. */
static inline void kill_by_next(llcl_context_t *context, uint32_t victim, int64_t delay)
{
    uint32_t me = llcl_rank(context);
    if (me == victim) {
        sleep_ms(60000);
        test_fail(__FILE__, __LINE__, "the victim was not killed");
    }
    if (me == (victim + 1) % llcl_size(context))
        kill_peer(context, victim, now_ns() + delay);
}

/* A thread that kills a rank. If `told` is not NULL, it writes the time of the kill to word 0 of
 * `told` at all other ranks. */
struct killing {
    llcl_context_t *context;
    uint32_t victim;
    int64_t at;
    const struct shared *told;
};

static inline void *kill_and_tell(void *data)
{
    const struct killing *killing = data;
    llcl_write_value_params_t value = {0};
    test_rank = llcl_rank(killing->context);
    kill_peer(killing->context, killing->victim, killing->at);
    value.value = (uint64_t)now_ns();
    value.size = 8;
    for (value.peer = 0; killing->told && value.peer < llcl_size(killing->context); value.peer++) {
        if (value.peer == killing->victim)
            continue;
        value.destination = remote_at(killing->told, value.peer, 0);
        CHECK_OK(llcl_write_value(killing->context, &value));
    }
    return NULL;
}

static inline uint64_t kill_seed(void)
{
    const char *seed = getenv("KILL_SEED");
    CHECK(seed != NULL);
    return strtoull(seed, NULL, 10);
}

static inline pid_t kill_start(const struct kill_plan *plan, const struct kill_result *result,
                               uint64_t seed, int round, int out)
{
    char text[32], ranks[16];
    pid_t child;
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
        snprintf(ranks, sizeof ranks, "%d", plan->ranks);
        setenv("KILL_SEED", text, 1);
        plan->set_up(round);
        dup2(out, 1);
        dup2(out, 2);
        execl(result->launcher, result->launcher, "--keep-going", "--timeout", "15", "-n", ranks,
              result->self, (char *)NULL);
        _exit(126);
    }
    return child;
}

static inline long kill_value(const char *line, const char *name)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, name);
    return at && (!end || at < end) ? atol(at + strlen(name)) : 0;
}

static inline int kill_round(const struct kill_plan *plan, struct kill_result *result, uint64_t seed,
                             int round)
{
    char output[16384], *at = output;
    size_t got = 0;
    ssize_t n;
    int ends[2], state = 0, survivors = 0;
    long skips = 0, largest_gap = 0;
    pid_t child;
    CHECK(pipe(ends) == 0);
    child = kill_start(plan, result, seed, round, ends[1]);
    close(ends[1]);
    while ((n = read(ends[0], output + got, sizeof output - 1 - got)) > 0)
        got += (size_t)n;
    output[got] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &state, 0) == child);
    while ((at = strstr(at, "survivor ")) != NULL) {
        long gap = kill_value(at, " gap ");
        largest_gap = gap > largest_gap ? gap : largest_gap;
        skips += kill_value(at, " skips ");
        survivors++;
        at += 9;
    }
    result->largest_gap = largest_gap > result->largest_gap ? largest_gap : result->largest_gap;
    result->late += largest_gap > SECOND / 1000;
    result->skips += skips;
    result->skipping += skips > 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 128 + SIGKILL && survivors == plan->ranks - 1)
        return 1;
    fprintf(stderr, "round %d, seed %llu: wait status 0x%x, %d survivors; the output was:\n%s\n", round,
            (unsigned long long)seed, (unsigned)state, survivors, output);
    return 0;
}

static inline int kill_main(const struct kill_plan *plan, int count, char **arguments)
{
    struct kill_result *result = calloc(1, sizeof *result);
    const char *launcher = getenv("LLCL_RUN");
    int rounds = count > 1 ? atoi(arguments[1]) : plan->rounds, round, good = 0;
    uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : (uint64_t)now_ns() / 1000;
    if (getenv("LLCL_RANK"))
        return test_main(plan->run, NULL);
    CHECK(result != NULL && launcher != NULL);
    CHECK(readlink("/proc/self/exe", result->self, sizeof result->self - 1) > 0);
    snprintf(result->launcher, sizeof result->launcher, "%s", launcher);
    printf("%s: %d rounds, first seed %llu\n", plan->name, rounds, (unsigned long long)seed);
    for (round = 0; round < rounds; round++)
        good += kill_round(plan, result, seed + (uint64_t)round * 7919, round);
    printf("%s: %d of %d rounds good; largest gap %ld us", plan->name, good, rounds, result->largest_gap);
    if (plan->prompt)
        printf(", %d late", result->late);
    if (result->skips)
        printf("; %ld slots skipped in %ld rounds", result->skips, result->skipping);
    printf("\n");
    return good == rounds && (!plan->prompt || result->late <= MOST_LATE) ? 0 : 1;
}

#endif
