/* Broken if this fails: while messages arrive, a handler is replaced or removed and a message is
 * handled by neither or by both, or an old handler is still running, or runs again, after
 * llcl_am_register has returned.
 * ranks: 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 30
 */
#include "am.h"

#define ROUNDS 300
#define ASLEEP 8

struct owner; /* a registration: its handler may only run while it is in force */

struct rank {
    llcl_context_t *context;
    uint64_t over, handled, refused, accepted, sent;
    struct owner *owners;
};

struct owner {
    struct rank *rank;
    uint64_t state; /* 0: in force, 1: its successor is in force */
    uint64_t calls;
};

static void handle(llcl_am_t *message, void *data)
{
    struct owner *owner = data;
    unsigned i;
    (void)message;
    CHECK_EQUAL(word_get(&owner->state), 0);
    word_add(&owner->calls, 1);
    for (i = 0; i < 50; i++)
        CHECK_EQUAL(word_get(&owner->state), 0);
    word_add(&owner->rank->handled, 1);
}

static void fire(void *data, llcl_status_t status)
{
    struct rank *rank = data;
    if (status == LLCL_OK) {
        word_add(&rank->accepted, 1);
    } else {
        CHECK_STATUS(status, LLCL_ERR_NO_HANDLER);
        word_add(&rank->refused, 1);
    }
}

/* Floods rank 0 until it has changed its handler often enough. */
static void send_until_over(struct rank *rank)
{
    while (!word_get(&rank->over)) {
        llcl_am_params_t am = am_to(0, 1, &rank->sent, 8);
        llcl_status_t status;
        am.on_complete = llcl_callback(fire, rank);
        status = llcl_am_async(rank->context, &am);
        if (status == LLCL_ERR_NO_HANDLER)
            continue;
        CHECK_OK(status);
        rank->sent++;
    }
    CHECK_OK(llcl_flush_all(rank->context));
    CHECK_EQUAL(word_get(&rank->accepted) + word_get(&rank->refused), rank->sent);
}

static void change(struct rank *rank)
{
    uint32_t i;
    for (i = 0; i < ROUNDS; i++) {
        struct owner *old = i ? &rank->owners[i - 1] : NULL;
        int remove = i % 4 == 3;
        rank->owners[i].rank = rank;
        am_register(rank->context, 1, remove ? NULL : handle, remove ? NULL : &rank->owners[i]);
        if (old)
            word_set(&old->state, 1);
        /* Some calls of the new one, or just some time. */
        if (!remove)
            CHECK_STATUS(llcl_wait_word(rank->context, &rank->owners[i].calls, i % 8, AM_PATIENCE_NS),
                         LLCL_OK);
        else if (i % ASLEEP == 7)
            sleep_ms(1);
    }
}

static void over(llcl_am_t *message, void *data)
{
    (void)message;
    word_set(&((struct rank *)data)->over, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t i, size = llcl_size(context);
    uint64_t mine, all[64];
    rank->context = context;
    rank->owners = am_new(ROUNDS * sizeof *rank->owners);
    am_register(context, 2, over, rank);
    fence(context);
    if (llcl_rank(context) == 0) {
        change(rank);
        for (i = 1; i < size; i++) {
            llcl_am_params_t am = am_to(i, 2, NULL, 0);
            CHECK_OK(llcl_am_async(context, &am));
        }
    } else {
        send_until_over(rank);
    }
    mine = word_get(&rank->accepted);
    CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, all));
    for (mine = 0, i = 1; i < size; i++)
        mine += all[i];
    if (llcl_rank(context) == 0) {
        CHECK_EQUAL(word_get(&rank->handled), mine);
        CHECK(mine > ROUNDS);
    }
}

TEST_MAIN(run)
