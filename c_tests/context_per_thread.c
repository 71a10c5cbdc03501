/* Broken if this fails: threads of a rank that have a context each, and use it at once with the
 * others, meet each other's messages, words, keys, flushes, barriers or duplicates; or one of them
 * ends its own while the others go on, and they notice.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "am.h"

enum { THREADS = 4, HANDLER = 5, ROUNDS = 60 /* a multiple of each number of ranks */ };

/* What a thread has for itself. The thread of this number of another rank has the context that
 * belongs to it. */
struct owner {
    llcl_context_t *context;
    uint32_t number;
    uint64_t handled;
};

static void handle(llcl_am_t *message, void *data)
{
    struct owner *owner = data;
    llcl_am_view_t view = am_view(message);
    CHECK(view.header_size == sizeof owner->number && memcmp(view.header, &owner->number, view.header_size) == 0);
    word_add(&owner->handled, 1);
}

/* A word of our own at the peer is written and read back, its counter grows by the thread's number,
 * a message goes to it. */
static void one_round(struct owner *owner, const struct shared *shared, uint32_t round)
{
    llcl_context_t *context = owner->context;
    uint32_t me = llcl_rank(context), peer = (me + round) % llcl_size(context);
    uint64_t out = (uint64_t)owner->number << 32 | round, back = 0, old;
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    llcl_read_params_t read = LLCL_READ_PARAMS_INIT;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    llcl_am_params_t am = am_to(peer, HANDLER, &owner->number, sizeof owner->number);
    write.peer = read.peer = add.peer = peer;
    write.source = llcl_local_address(&out);
    write.destination = read.source = remote_at(shared, peer, 64 + 8 * me);
    read.destination = llcl_local_address(&back);
    write.size = read.size = 8;
    add.target = remote_at(shared, peer, 0);
    add.result = &old;
    add.operand = owner->number;
    CHECK_OK(llcl_am_async(context, &am));
    CHECK_OK(llcl_write(context, &write));
    CHECK_OK(llcl_fetch_add(context, &add));
    CHECK_EQUAL(old % owner->number, 0);
    CHECK_OK(llcl_read(context, &read));
    CHECK_EQUAL(back, out);
}

static void use(struct owner *owner)
{
    llcl_context_t *context = owner->context;
    int kind;
    owner->handled = 0;
    am_register(context, HANDLER, handle, owner);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared shared;
        uint32_t round;
        share(context, kind, 4096, &shared);
        for (round = 0; round < ROUNDS; round++)
            one_round(owner, &shared, round);
        CHECK_OK(llcl_flush_all(context));
        CHECK_OK(llcl_barrier(context));
        CHECK_EQUAL(word_get(shared.words), ROUNDS * owner->number);
        share_end(context, &shared);
    }
    AM_AWAIT(context, &owner->handled, MEMORY_KINDS * ROUNDS);
    CHECK_OK(llcl_barrier(context));
    CHECK_EQUAL(word_get(&owner->handled), MEMORY_KINDS * ROUNDS);
}

/* The odd ones duplicate their own beside the others' work, and end the first before they use the
 * second. */
static void *work(void *data)
{
    struct owner *owner = data;
    llcl_context_t *other = NULL;
    test_rank = llcl_rank(owner->context);
    use(owner);
    if (owner->number % 2) {
        CHECK_OK(llcl_context_duplicate(owner->context, NULL, &other));
        CHECK_OK(llcl_finalize(owner->context));
        owner->context = other;
        use(owner);
    }
    CHECK_OK(llcl_finalize(owner->context));
    return NULL;
}

static void run(llcl_context_t *context)
{
    struct owner *owners = am_new((THREADS + 1) * sizeof *owners), *ours = &owners[THREADS];
    pthread_t threads[THREADS];
    int i;
    ours->context = context;
    ours->number = THREADS + 1;
    for (i = 0; i < THREADS; i++) {
        owners[i].number = (uint32_t)i + 1;
        CHECK_OK(llcl_context_duplicate(context, NULL, &owners[i].context));
    }
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &owners[i]) == 0);
    use(ours);
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(llcl_barrier(context));
}

TEST_MAIN(run)
