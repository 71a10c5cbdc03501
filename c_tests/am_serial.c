/* Broken if this fails: where LLCL_AM_HANDLERS is serial, two handlers of a context run at once,
 * although several of its threads wait and help, and messages come from all ranks.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

#define MESSAGES 2000u
#define WAITERS 3

struct rank {
    llcl_context_t *context;
    uint64_t count, all;
    uint32_t inside, plain; /* plain: not atomic, for checkers */
};

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    unsigned i;
    (void)message;
    CHECK_EQUAL(__atomic_exchange_n(&rank->inside, 1, __ATOMIC_RELAXED), 0);
    rank->plain++;
    for (i = 0; i < 20 && rank->plain % 16 == 0; i++)
        sched_yield();
    CHECK_EQUAL(__atomic_exchange_n(&rank->inside, 0, __ATOMIC_RELAXED), 1);
    word_add(&rank->count, 1);
}

static void *wait_there(void *data)
{
    struct rank *rank = data;
    test_rank = llcl_rank(rank->context);
    AM_AWAIT(rank->context, &rank->count, rank->all);
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t size = llcl_size(context), i;
    pthread_t threads[WAITERS];
    rank->context = context;
    rank->all = (uint64_t)size * MESSAGES;
    am_register(context, 0, handle, rank);
    am_register(context, 1, handle, rank);
    fence(context);
    for (i = 0; i < WAITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_there, rank) == 0);
    for (i = 0; i < size * MESSAGES; i++) {
        llcl_am_params_t am = am_to(i % size, i % 2, NULL, 0);
        CHECK_OK(llcl_am_async(context, &am));
    }
    for (i = 0; i < WAITERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQUAL(rank->plain, rank->all);
    fence(context);
}

TEST_MAIN(run)
