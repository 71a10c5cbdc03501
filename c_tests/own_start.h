/* Ranks that a test starts without llcl-run, as another launcher would: forked processes, with an
 * allgather through memory that they share. */
#ifndef OWN_START_H
#define OWN_START_H
#include "test.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { OWN_RANKS = 4, OWN_BYTES = 256 };

struct own_start {
    uint64_t entered, left; /* counts the entries to and exits from the allgather, of all ranks */
    uint64_t noticed; /* ranks that have noticed the death of another one */
    uint32_t ranks;
    unsigned char bytes[OWN_RANKS][OWN_BYTES];
};

struct own_rank {
    struct own_start *start;
    uint32_t rank;
    unsigned rounds;
    /* Called at the end of each round of the allgather; may be NULL. */
    void (*after)(struct own_rank *rank, unsigned round, const void *all, size_t size);
    int refuse;            /* the allgather fails in this round (1 is the first); 0: in none */
    uint64_t aborted_with; /* 1 more than the code with which `abort` was called; 0: it was not */
};

static inline int32_t own_allgather(void *data, const void *mine, size_t size, void *all)
{
    struct own_rank *me = data;
    struct own_start *start = me->start;
    uint64_t ranks = start->ranks, r;
    unsigned round = ++me->rounds;
    CHECK(size <= OWN_BYTES);
    memcpy(start->bytes[me->rank], mine, size);
    word_add(&start->entered, 1);
    AWAIT(&start->entered, round * ranks);
    for (r = 0; r < ranks; r++)
        memcpy((char *)all + r * size, start->bytes[r], size);
    word_add(&start->left, 1);
    AWAIT(&start->left, round * ranks);
    if (me->after)
        me->after(me, round, all, size);
    return me->refuse == (int)round ? -1 : 0;
}

/* Calls llcl_init for such a rank. */
static inline llcl_status_t own_init(struct own_rank *me, llcl_abort_fn abort_fn, llcl_context_t **context)
{
    llcl_bootstrap_t bootstrap = LLCL_BOOTSTRAP_INIT;
    llcl_config_t config = LLCL_CONFIG_INIT;
    bootstrap.rank = me->rank;
    bootstrap.size = me->start->ranks;
    bootstrap.allgather = own_allgather;
    bootstrap.abort = abort_fn;
    bootstrap.data = me;
    config.bootstrap = &bootstrap;
    return llcl_init(&config, context);
}

/* Runs `run` in `ranks` processes. Sets `codes` to their exit codes; for a process that was killed,
 * to 256 plus the signal. */
static inline void own_ranks(uint32_t ranks, void (*run)(struct own_rank *me), int *codes)
{
    struct own_start *start =
        mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[OWN_RANKS];
    uint32_t r;
    CHECK(start != MAP_FAILED && ranks <= OWN_RANKS);
    start->ranks = ranks;
    fflush(NULL);
    for (r = 0; r < ranks; r++) {
        pids[r] = fork();
        CHECK(pids[r] >= 0);
        if (pids[r] == 0) {
            struct own_rank me = {0};
            me.start = start;
            me.rank = test_rank = r;
            run(&me);
            test_end(0);
        }
    }
    for (r = 0; r < ranks; r++) {
        int state = 0;
        CHECK(waitpid(pids[r], &state, 0) == pids[r]);
        codes[r] = WIFEXITED(state) ? WEXITSTATUS(state) : 256 + WTERMSIG(state);
    }
    CHECK(munmap(start, sizeof *start) == 0);
}

static inline void own_ranks_succeed(uint32_t ranks, void (*run)(struct own_rank *me))
{
    int codes[OWN_RANKS];
    uint32_t r;
    own_ranks(ranks, run, codes);
    for (r = 0; r < ranks; r++)
        CHECK_EQUAL(codes[r], 0);
}
#endif
