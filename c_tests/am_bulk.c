/* Broken if this fails: the payload of a BULK message cannot be read by the receiver, in the
 * handler or after it, at some size, from allocated or registered memory; or the sender is told
 * that it may reuse it before the receiver has answered or released the message.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "am.h"

#define FAST_LARGEST 65537
#define PLACES 4

struct rank {
    llcl_context_t *context;
    struct shared places[PLACES]; /* where payloads are read to */
    uint64_t in_use;              /* bits of places */
    uint64_t handled, later_count;
    pthread_mutex_t lock;
    struct pull *later;
};

struct order { /* the header */
    uint32_t seed, how;
    uint64_t size;
};

/* A message that is being read. */
struct pull {
    struct pull *next;
    struct rank *rank;
    llcl_am_t *message;
    struct order order;
    llcl_remote_t source;
    int place;
};

/* The payload is here: answer (how 0) or release (how 1). */
static void arrived(void *data, llcl_status_t status)
{
    struct pull *pull = data;
    struct rank *rank = pull->rank;
    CHECK_OK(status);
    CHECK(pattern_holds(rank->places[pull->place].bytes, pull->order.size, pull->order.seed));
    word_add(&rank->handled, 1);
    __atomic_fetch_and(&rank->in_use, ~(UINT64_C(1) << pull->place), __ATOMIC_ACQ_REL);
    if (pull->order.how == 0) {
        CHECK_OK(llcl_am_reply(pull->message, &pull->order.seed, sizeof pull->order.seed));
        CHECK_STATUS(llcl_am_reply(pull->message, NULL, 0), LLCL_ERR_STATE);
    }
    CHECK_OK(llcl_am_release(pull->message));
    free(pull);
}

static int take_place(struct rank *rank)
{
    uint64_t used = word_get(&rank->in_use);
    for (;;) {
        int i = 0;
        while (i < PLACES && used >> i & 1)
            i++;
        if (i == PLACES)
            return -1;
        if (__atomic_compare_exchange_n(&rank->in_use, &used, used | UINT64_C(1) << i, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return i;
    }
}

static llcl_status_t read_it(struct pull *pull)
{
    llcl_read_params_t read = {0};
    llcl_status_t status;
    pull->place = take_place(pull->rank);
    if (pull->place < 0)
        return LLCL_RETRY_BUSY;
    read.peer = am_source(pull->message);
    read.source = pull->source;
    read.destination = llcl_region_local(pull->rank->places[pull->place].region, 0);
    read.size = pull->order.size;
    read.on_complete = llcl_callback(arrived, pull);
    status = llcl_try_read_async(pull->rank->context, &read);
    if (status != LLCL_OK)
        __atomic_fetch_and(&pull->rank->in_use, ~(UINT64_C(1) << pull->place), __ATOMIC_ACQ_REL);
    CHECK(status >= 0);
    return status;
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    struct pull *pull = calloc(1, sizeof *pull);
    llcl_am_view_t view = am_view(message);
    CHECK(pull != NULL);
    pull->rank = rank;
    memcpy(&pull->order, am_header(message, NULL), sizeof pull->order);
    pull->source = view.address;
    CHECK_EQUAL(view.kind, LLCL_AM_BULK);
    CHECK_EQUAL(view.payload_size, pull->order.size);
    CHECK(view.payload == NULL);
    CHECK_EQUAL(am_wants_reply(message), 1);
    pull->message = llcl_am_retain(message);
    CHECK(pull->message != NULL);
    CHECK(llcl_am_retain(message) == NULL);
    if (pull->order.how == 1 || read_it(pull) != LLCL_OK) {
        CHECK(pthread_mutex_lock(&rank->lock) == 0);
        pull->next = rank->later;
        rank->later = pull;
        CHECK(pthread_mutex_unlock(&rank->lock) == 0);
        word_add(&rank->later_count, 1);
    }
}

/* The other way: an ordinary thread pulls what handlers have kept. */
static void pull_later(struct rank *rank)
{
    struct pull *pull, *next;
    CHECK(pthread_mutex_lock(&rank->lock) == 0);
    pull = rank->later;
    rank->later = NULL;
    CHECK(pthread_mutex_unlock(&rank->lock) == 0);
    for (; pull; pull = next) {
        next = pull->next;
        POST(read_it(pull));
    }
}

static void wait_for(struct rank *rank, const uint64_t *word, uint64_t value)
{
    int64_t end = now_ns() + AM_PATIENCE_NS;
    llcl_status_t status;
    while ((status = llcl_wait_word(rank->context, word, value, 1000000)) != LLCL_OK) {
        CHECK_STATUS(status, LLCL_ERR_TIMEOUT);
        CHECK(now_ns() < end);
        pull_later(rank);
    }
}

static void send_all(struct rank *rank, uint32_t peer, int kind)
{
    struct shared mine;
    uint32_t i, most = test_in_threads() ? FAST_LARGEST : TEST_LARGEST;
    region_make(rank->context, kind, TEST_LARGEST, &mine);
    for (i = 0; i < 2 * TEST_SIZES; i++) {
        struct order order = {i * 7 + 1, i % 2, test_sizes[i / 2]};
        llcl_am_params_t am = am_to(peer, 255, &order, sizeof order);
        struct tally local = {0, 0, 0};
        uint64_t done = 0;
        uint32_t answer = 0;
        size_t answered = 99;
        if (order.size > most)
            continue;
        pattern_fill(mine.bytes, order.size, order.seed);
        am.kind = LLCL_AM_BULK;
        am.flags = i % 5 == 4 ? LLCL_FLAG_DEFER : 0;
        am.source = llcl_region_local(mine.region, 0);
        am.payload_size = order.size;
        am.reply = &answer;
        am.reply_capacity = sizeof answer;
        am.reply_size = &answered;
        am.on_local = count_in(&local);
        am.on_complete = llcl_store_on(&done);
        POST(llcl_try_am_async(rank->context, &am));
        /* Clobbers the payload as soon as the library says that it may: the receiver would see
         * it. */
        while (word_get(&local.fired) == 0) {
            pull_later(rank);
            llcl_wait_word(rank->context, &local.fired, 1, 200000);
        }
        memset(mine.bytes, 0xee, order.size);
        wait_for(rank, &done, 1);
        CHECK_EQUAL(done, 1);
        CHECK_EQUAL(local.failed, 0);
        CHECK_EQUAL(answered, order.how == 0 ? sizeof answer : 0);
        CHECK_EQUAL(answer, order.how == 0 ? order.seed : 0);
    }
    region_drop(&mine);
}


static void finished(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    uint64_t *over = am_new(sizeof *over);
    int kind;
    rank->context = context;
    CHECK(pthread_mutex_init(&rank->lock, NULL) == 0);
    for (i = 0; i < PLACES; i++)
        region_make(context, i % MEMORY_KINDS, TEST_LARGEST, &rank->places[i]);
    am_register(context, 255, handle, rank);
    am_register(context, 254, finished, over);
    fence(context);
    for (i = 0; i < size; i++)
        for (kind = 0; kind < MEMORY_KINDS; kind++)
            send_all(rank, (me + i) % size, kind);
    /* Serves the others until all have told that they are through. */
    for (i = 0; i < size; i++) {
        llcl_am_params_t am = am_to(i, 254, NULL, 0);
        CHECK_OK(llcl_am_async(context, &am));
    }
    wait_for(rank, over, size);
    fence(context);
    CHECK(word_get(&rank->handled) >= (uint64_t)size * MEMORY_KINDS * 2 * (TEST_SIZES - 1));
    CHECK(word_get(&rank->later_count) >= word_get(&rank->handled) / 2);
    for (i = 0; i < PLACES; i++)
        region_drop(&rank->places[i]);
}

TEST_MAIN(run)
