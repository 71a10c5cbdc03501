/* Broken if this fails: a reply of some size from 0 to am_medium, given in the handler or by
 * another thread after the message was retained, does not arrive whole, once, with its size, before
 * on_complete; or bytes of the sender beside it change.
 * ranks: 1 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 30
 */
#include "am.h"

#define MEDIUM 4096
#define GUARD 32
#define BATCH 16

struct rank {
    llcl_context_t *context;
    pthread_mutex_t lock;
    pthread_cond_t some;
    llcl_am_t *kept[4096];
    uint32_t count;
    int over;
};

struct order { /* the header */
    uint32_t seed, later;
    uint64_t size;
};

static void configure(llcl_config_t *config)
{
    config->am_medium = MEDIUM;
    config->am_requests = 64;
    config->am_slots = 32;
}

static void answer(llcl_am_t *message)
{
    unsigned char bytes[MEDIUM];
    struct order order;
    size_t header = 0, payload = 99;
    memcpy(&order, am_header(message, &header), sizeof order);
    CHECK_EQUAL(header, sizeof order);
    /* A retained message keeps its payload, too. */
    CHECK(pattern_holds(am_payload(message, &payload), order.size / 2, order.seed + 1));
    CHECK_EQUAL(payload, order.size / 2);
    pattern_fill(bytes, order.size, order.seed);
    CHECK_EQUAL(am_wants_reply(message), 1);
    CHECK_OK(llcl_am_reply(message, order.size ? bytes : NULL, order.size));
    memset(bytes, 0xee, sizeof bytes); /* ours again */
    CHECK_STATUS(llcl_am_reply(message, bytes, 1), LLCL_ERR_STATE);
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    struct order order;
    memcpy(&order, am_header(message, NULL), sizeof order);
    if (!order.later) {
        answer(message);
        return;
    }
    CHECK(pthread_mutex_lock(&rank->lock) == 0);
    CHECK(rank->count < 4096);
    rank->kept[rank->count] = llcl_am_retain(message);
    CHECK(rank->kept[rank->count] != NULL);
    CHECK_EQUAL(am_source(rank->kept[rank->count]), am_source(message));
    rank->count++;
    CHECK(pthread_cond_signal(&rank->some) == 0);
    CHECK(pthread_mutex_unlock(&rank->lock) == 0);
}

static void *answer_later(void *data)
{
    struct rank *rank = data;
    test_rank = llcl_rank(rank->context);
    for (;;) {
        llcl_am_t *message = NULL;
        CHECK(pthread_mutex_lock(&rank->lock) == 0);
        while (!rank->count && !rank->over)
            CHECK(pthread_cond_wait(&rank->some, &rank->lock) == 0);
        if (rank->count)
            message = rank->kept[--rank->count];
        CHECK(pthread_mutex_unlock(&rank->lock) == 0);
        if (!message)
            return NULL;
        answer(message);
        CHECK_OK(llcl_am_release(message));
    }
}

struct place {
    unsigned char bytes[GUARD + MEDIUM + GUARD];
    struct order order;
    size_t size;
    uint64_t fired;
};

static void replied(void *data, llcl_status_t status)
{
    struct place *place = data;
    CHECK_OK(status);
    CHECK_EQUAL(place->size, place->order.size);
    CHECK(pattern_holds(place->bytes + GUARD, place->size, place->order.seed));
    CHECK(bytes_are(place->bytes, GUARD, 0x11));
    CHECK(bytes_are(place->bytes + GUARD + place->size, GUARD, 0x11));
    word_add(&place->fired, 1);
}

static void send_batch(struct rank *rank, uint32_t peer, const size_t *sizes, uint32_t count)
{
    struct place *places = malloc(BATCH * sizeof *places);
    unsigned char payload[MEDIUM];
    uint32_t i;
    CHECK(places != NULL);
    for (i = 0; i < count; i++) {
        struct place *place = &places[i];
        llcl_am_params_t am;
        memset(place, 0, sizeof *place);
        memset(place->bytes, 0x11, sizeof place->bytes);
        place->order.seed = (uint32_t)sizes[i] * 3 + i;
        place->order.later = i % 2;
        place->order.size = sizes[i];
        place->size = 12345;
        pattern_fill(payload, sizes[i] / 2, place->order.seed + 1);
        am = am_to(peer, 1, &place->order, sizeof place->order);
        am.flags = i % 5 == 4 ? LLCL_FLAG_DEFER : 0;
        am.payload = sizes[i] / 2 ? payload : NULL;
        am.payload_size = sizes[i] / 2;
        am.reply = place->bytes + GUARD;
        am.reply_capacity = i % 3 ? sizes[i] : MEDIUM; /* just enough, or more */
        am.reply_size = &place->size;
        am.on_complete = llcl_callback(replied, place);
        if (am.flags || test_mode_is("offload")) {
            uint64_t local = 0;
            am.on_local = llcl_store_on(&local);
            POST(llcl_try_am_async(rank->context, &am));
            AWAIT(&local, 1);
            CHECK_EQUAL(local, 1);
        } else {
            POST(llcl_try_am_async(rank->context, &am));
        }
    }
    for (i = 0; i < count; i++)
        AM_AWAIT(rank->context, &places[i].fired, 1);
    for (i = 0; i < count; i++)
        CHECK_EQUAL(places[i].fired, 1);
    free(places);
}

static void send_all(struct rank *rank, uint32_t peer)
{
    size_t sizes[BATCH];
    uint32_t count = 0;
    size_t size;
    for (size = 0; size <= MEDIUM; size += size < 140 || size > MEDIUM - 20 ? 1 : 37) {
        sizes[count++] = size;
        /* Each size once in the handler and once later. */
        sizes[count++] = size;
        if (count == BATCH) {
            send_batch(rank, peer, sizes, count);
            count = 0;
        }
    }
    sizes[count++] = MEDIUM;
    send_batch(rank, peer, sizes, count);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    pthread_t thread;
    rank->context = context;
    CHECK(pthread_mutex_init(&rank->lock, NULL) == 0 && pthread_cond_init(&rank->some, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, answer_later, rank) == 0);
    am_register(context, 1, handle, rank);
    fence(context);
    for (i = 0; i < size; i++)
        send_all(rank, (me + i) % size);
    fence(context);
    CHECK(pthread_mutex_lock(&rank->lock) == 0);
    rank->over = 1;
    CHECK(pthread_cond_signal(&rank->some) == 0);
    CHECK(pthread_mutex_unlock(&rank->lock) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST_MAIN_CONFIG(run, configure)
