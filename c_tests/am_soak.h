/* A random mixture of messages. Each message that a sender's call has accepted must be handled by
 * its receiver, exactly once, and must end as the receiver has answered it. */
#ifndef AM_SOAK_H
#define AM_SOAK_H
#include "am.h"

#define SOAK_THREADS 3
#define SOAK_LARGEST 40000u /* bytes of a LONG or BULK payload */
#define SOAK_MOST 1000000u  /* messages of one rank to another */
#define SOAK_PENDING 48     /* requests of one thread under way */

enum { SOAK_NOW, SOAK_LATER, SOAK_NEVER, SOAK_FORWARD, SOAK_HOWS };
enum { SOAK_IDS = 5 };

/* The beginning of a message's header; the rest of the header is a pattern. */
struct soak_head {
    uint32_t number, seed, how, size;
};

struct soak_kept {
    struct soak_kept *next;
    struct soak *soak;
    llcl_am_t *message;
    struct soak_head head;
};

struct soak {
    llcl_context_t *context;
    uint64_t seed;
    uint32_t me, ranks;
    size_t medium;
    struct ledger handled;      /* by source */
    uint64_t numbers[64];       /* by destination: the numbers used so far */
    uint64_t accepted[64];      /* by destination: the messages that were accepted */
    uint64_t fired, expected;   /* completions */
    uint64_t handled_from[64];  /* by source */
    uint64_t dead;              /* completions with LLCL_ERR_PEER_DEAD */
    int deaths;                 /* the rank `victim` dies */
    uint32_t victim;
    uint64_t over, forwarded;
    struct shared incoming;     /* for LONG payloads: a place for each thread of each rank */
    struct shared pulled;       /* the thread that answers later reads BULK payloads to it */
    pthread_mutex_t lock;
    struct soak_kept *kept;
    struct later later;
};

/* A sending thread, with its own memory for payloads. */
struct soak_sender {
    struct soak *soak;
    uint32_t number;
    uint64_t random;
    struct shared mine[MEMORY_KINDS];
};

struct soak_request {
    struct soak *soak;
    uint32_t expected_size, seed;
    size_t reply_size;
    uint64_t *in_flight;
    unsigned char reply[600];
};

static inline void soak_configure(llcl_config_t *config)
{
    config->am_slots = 16;
    config->am_medium = 1024;
    config->am_requests = 128;
}

/* Replies with up to 500 bytes, which the request's seed determines. */
static inline void soak_answer(llcl_am_t *message, const struct soak_head *head)
{
    unsigned char bytes[500];
    size_t size = head->seed % sizeof bytes;
    pattern_fill(bytes, size, head->seed ^ 0x1234);
    CHECK_OK(llcl_am_reply(message, bytes, size));
}

static inline void soak_forward(struct soak *soak, const struct soak_head *from);

static inline void soak_handle(llcl_am_t *message, void *data)
{
    struct soak *soak = data;
    struct soak_head head;
    size_t header = 0, size = 0;
    uint32_t source = am_source(message);
    const unsigned char *bytes = am_header(message, &header), *body;
    memcpy(&head, bytes, sizeof head);
    CHECK(source < soak->ranks && header >= sizeof head);
    CHECK(pattern_holds(bytes + sizeof head, header - sizeof head, head.seed));
    body = am_payload(message, &size);
    if (am_view(message).kind != LLCL_AM_BULK)
        CHECK(pattern_holds(body, size, head.seed));
    CHECK_EQUAL(size, head.size);
    /* Before it counts as handled: else soak_all() could miss the message that is sent here. */
    if (head.how == SOAK_FORWARD)
        soak_forward(soak, &head);
    ledger_mark(&soak->handled, source, head.number);
    word_add(&soak->handled_from[source], 1);
    if (head.how == SOAK_LATER) {
        struct soak_kept *kept = malloc(sizeof *kept);
        CHECK(kept != NULL);
        kept->soak = soak;
        kept->head = head;
        kept->message = llcl_am_retain(message);
        CHECK(kept->message != NULL);
        CHECK(pthread_mutex_lock(&soak->lock) == 0);
        kept->next = soak->kept;
        soak->kept = kept;
        CHECK(pthread_mutex_unlock(&soak->lock) == 0);
    } else if (head.how != SOAK_NEVER) {
        soak_answer(message, &head);
    }
}

/* The number of the next message to a rank, or UINT32_MAX if SOAK_MOST were sent. */
static inline uint32_t soak_number(struct soak *soak, uint32_t to)
{
    uint64_t number = word_add(&soak->numbers[to], 1);
    return number < SOAK_MOST ? (uint32_t)number : UINT32_MAX;
}

/* Sends a one-way message from a handler to a random rank, at once or by `later`. */
static inline void soak_forward(struct soak *soak, const struct soak_head *from)
{
    uint32_t to = from->seed / 7 % soak->ranks, number;
    struct soak_head head;
    llcl_am_params_t am;
    if (soak->deaths || (number = soak_number(soak, to)) == UINT32_MAX)
        return;
    head.number = number;
    head.seed = from->seed * 31 + 1;
    head.how = SOAK_NEVER;
    head.size = 0;
    am = am_to(to, from->seed % SOAK_IDS, &head, sizeof head);
    word_add(&soak->accepted[to], 1);
    word_add(&soak->forwarded, 1);
    later_send(&soak->later, soak->context, &am);
}

/* Answers and releases a message that a handler has retained. Reads the payload of a BULK message
 * before. */
static inline void soak_finish(struct soak *soak, struct soak_kept *kept)
{
    llcl_am_view_t view = am_view(kept->message);
    if (view.kind == LLCL_AM_BULK && view.payload_size) {
        llcl_read_params_t read = {0};
        llcl_status_t status;
        read.peer = view.source;
        read.source = view.address;
        read.destination = llcl_region_local(soak->pulled.region, 0);
        read.size = view.payload_size;
        status = llcl_read(soak->context, &read);
        CHECK(status == LLCL_OK || (soak->deaths && status == LLCL_ERR_PEER_DEAD));
        if (status == LLCL_OK)
            CHECK(pattern_holds(soak->pulled.bytes, view.payload_size, kept->head.seed));
    }
    if (kept->head.seed % 5)
        soak_answer(kept->message, &kept->head);
    CHECK_OK(llcl_am_release(kept->message));
}

static inline uint64_t soak_serve(struct soak *soak)
{
    struct soak_kept *kept, *next;
    uint64_t count = 0;
    CHECK(pthread_mutex_lock(&soak->lock) == 0);
    kept = soak->kept;
    soak->kept = NULL;
    CHECK(pthread_mutex_unlock(&soak->lock) == 0);
    for (; kept; kept = next, count++) {
        next = kept->next;
        soak_finish(soak, kept);
        free(kept);
    }
    later_drain(&soak->later, soak->context);
    return count;
}

static inline void *soak_server(void *data)
{
    struct soak *soak = data;
    test_rank = soak->me;
    while (!word_get(&soak->over))
        if (!soak_serve(soak))
            usleep(100);
    return NULL;
}

static inline void soak_fire(void *data, llcl_status_t status)
{
    struct soak_request *request = data;
    struct soak *soak = request->soak;
    if (status == LLCL_ERR_PEER_DEAD && soak->deaths) {
        word_add(&soak->dead, 1);
    } else {
        CHECK_OK(status);
        CHECK_EQUAL(request->reply_size, request->expected_size);
        CHECK(pattern_holds(request->reply, request->reply_size, request->seed ^ 0x1234));
    }
    word_add(&soak->fired, 1);
    __atomic_fetch_sub(request->in_flight, 1, __ATOMIC_ACQ_REL);
    free(request);
}

static inline uint32_t soak_size(uint64_t *random, uint32_t most)
{
    uint64_t dice = random_next(random);
    switch (dice % 4) {
    case 0: return (uint32_t)(dice / 4 % 9);
    case 1: return (uint32_t)(dice / 4 % 120);
    case 2: return most - (uint32_t)(dice / 4 % 9);
    default: return (uint32_t)(dice / 4 % (most + 1));
    }
}

/* Sends a random message. Returns LLCL_ERR_PEER_DEAD if the receiver is dead. */
static inline llcl_status_t soak_send(struct soak_sender *sender, uint32_t to, uint64_t *in_flight)
{
    struct soak *soak = sender->soak;
    uint64_t *random = &sender->random, local = 0;
    int from = (int)(random_next(random) % MEMORY_KINDS), tier = (int)(random_next(random) % 8);
    unsigned char header[LLCL_AM_HEADER];
    struct soak_request *request = NULL;
    struct soak_head head;
    llcl_am_params_t am;
    llcl_status_t status;
    head.number = soak_number(soak, to);
    if (head.number == UINT32_MAX)
        return LLCL_OK;
    head.seed = (uint32_t)random_next(random);
    head.how = head.seed / 64 % SOAK_HOWS;
    am = am_to(to, head.seed % SOAK_IDS, header, sizeof head + random_next(random) % 49);
    am.kind = random_next(random) % 8 < 5 ? LLCL_AM_MEDIUM : 1 + (uint32_t)(random_next(random) % 2);
    /* The receiver reads the payload of a BULK message after the handler has returned, so the
     * handler must retain the message. */
    if (am.kind == LLCL_AM_BULK)
        head.how = SOAK_LATER;
    head.size = soak_size(random, am.kind == LLCL_AM_MEDIUM ? (uint32_t)soak->medium : SOAK_LARGEST);
    memcpy(header, &head, sizeof head);
    pattern_fill(header + sizeof head, sizeof header - sizeof head, head.seed);
    pattern_fill(sender->mine[from].bytes, head.size, head.seed);
    am.flags = random_next(random) % 5 == 0 ? LLCL_FLAG_DEFER : 0;
    am.payload_size = head.size;
    if (am.kind == LLCL_AM_MEDIUM)
        am.payload = head.size ? sender->mine[from].bytes : NULL;
    else
        am.source = llcl_region_local(sender->mine[from].region, 0);
    if (am.kind == LLCL_AM_LONG)
        am.destination = remote_at(&soak->incoming, to,
                                   (uint64_t)(soak->me * SOAK_THREADS + sender->number) * SOAK_LARGEST);
    /* The next message of this thread uses the payload's memory again, and a LONG message its place
     * at the peer. So the thread waits: a blocking call, or below until on_local. */
    if (am.kind == LLCL_AM_LONG || (am.kind == LLCL_AM_BULK && tier < 4) || tier == 0) {
        unsigned char reply[600];
        size_t size = 0;
        am.reply = reply;
        am.reply_capacity = sizeof reply;
        am.reply_size = &size;
        status = llcl_am(soak->context, &am);
        if (status == LLCL_OK && head.how != SOAK_NEVER && (head.how != SOAK_LATER || head.seed % 5))
            CHECK(size == head.seed % 500 && pattern_holds(reply, size, head.seed ^ 0x1234));
    } else {
        if (head.how == SOAK_NOW || head.how == SOAK_FORWARD || (head.how == SOAK_LATER && head.seed % 5)) {
            request = malloc(sizeof *request);
            CHECK(request != NULL);
            request->soak = soak;
            request->expected_size = head.seed % 500;
            request->seed = head.seed;
            request->in_flight = in_flight;
            am.reply = request->reply;
            am.reply_capacity = sizeof request->reply;
            am.reply_size = &request->reply_size;
            am.on_complete = llcl_callback(soak_fire, request);
            word_add(in_flight, 1);
        }
        am.on_local = llcl_store_on(&local);
        do
            status = tier % 2 ? llcl_try_am_async(soak->context, &am) : llcl_am_async(soak->context, &am);
        while (status > 0 && sched_yield() == 0);
        if (status == LLCL_OK) {
            if (request)
                word_add(&soak->expected, 1);
            CHECK_OK(llcl_wait_word(soak->context, &local, 1, AM_PATIENCE_NS));
            CHECK(local == 1 || (soak->deaths && (int64_t)local == LLCL_ERR_PEER_DEAD));
        } else if (request) {
            __atomic_fetch_sub(in_flight, 1, __ATOMIC_ACQ_REL);
            free(request);
        }
    }
    if (status == LLCL_OK)
        word_add(&soak->accepted[to], 1);
    CHECK(status == LLCL_OK ||
          (soak->deaths && to == soak->victim && status == LLCL_ERR_PEER_DEAD));
    return status;
}

struct soak_work {
    struct soak_sender sender;
    int64_t end;
};

static inline void *soak_thread(void *data)
{
    struct soak_work *work = data;
    struct soak *soak = work->sender.soak;
    uint64_t *in_flight = calloc(1, sizeof *in_flight);
    int64_t give_up;
    test_rank = soak->me;
    CHECK(in_flight != NULL);
    while (now_ns() < work->end) {
        uint32_t to = (uint32_t)(random_next(&work->sender.random) % soak->ranks);
        if (word_get(in_flight) >= SOAK_PENDING) {
            sched_yield();
            continue;
        }
        soak_send(&work->sender, to, in_flight);
    }
    give_up = now_ns() + AM_PATIENCE_NS;
    while (word_get(in_flight)) {
        usleep(100);
        CHECK(now_ns() < give_up);
    }
    free(in_flight);
    return NULL;
}

/* Collective. All ranks use the seed of rank 0. */
static inline struct soak *soak_begin(llcl_context_t *context, uint64_t seed)
{
    struct soak *soak = am_new(sizeof *soak);
    uint64_t seeds[64];
    uint32_t id;
    soak->context = context;
    soak->me = llcl_rank(context);
    soak->ranks = llcl_size(context);
    soak->medium = am_limits(context).am_medium;
    if (soak->medium > SOAK_LARGEST)
        soak->medium = SOAK_LARGEST;
    CHECK(soak->ranks <= 64);
    CHECK(pthread_mutex_init(&soak->lock, NULL) == 0);
    CHECK_OK(llcl_allgather_bytes(context, &seed, sizeof seed, seeds));
    soak->seed = seeds[0];
    if (soak->me == 0) {
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
    }
    ledger_make(&soak->handled, soak->ranks, SOAK_MOST);
    later_make(&soak->later);
    share(context, (int)(soak->seed % MEMORY_KINDS),
          (size_t)soak->ranks * SOAK_THREADS * SOAK_LARGEST, &soak->incoming);
    region_make(context, ALLOCATED, SOAK_LARGEST, &soak->pulled);
    for (id = 0; id < SOAK_IDS; id++)
        am_register(context, id, soak_handle, soak);
    fence(context);
    return soak;
}

/* Sends from several threads for a time, and waits for all replies. */
static inline void soak_send_for(struct soak *soak, int64_t span)
{
    struct soak_work *work = calloc(SOAK_THREADS, sizeof *work);
    pthread_t threads[SOAK_THREADS];
    uint32_t i;
    int kind;
    CHECK(work != NULL);
    for (i = 0; i < SOAK_THREADS; i++) {
        work[i].sender.soak = soak;
        work[i].sender.number = i;
        work[i].sender.random = (soak->seed + soak->me) * 1000003 + i * 97 + 1;
        for (kind = 0; kind < MEMORY_KINDS; kind++)
            region_make(soak->context, kind, SOAK_LARGEST, &work[i].sender.mine[kind]);
        work[i].end = now_ns() + span;
        CHECK(pthread_create(&threads[i], NULL, soak_thread, &work[i]) == 0);
    }
    for (i = 0; i < SOAK_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    /* BULK messages have ended as well: the threads have waited for each. */
    for (i = 0; i < SOAK_THREADS; i++)
        for (kind = 0; kind < MEMORY_KINDS; kind++)
            region_drop(&work[i].sender.mine[kind]);
    free(work);
    CHECK_EQUAL(word_get(&soak->fired), word_get(&soak->expected));
}

/* The number of messages that all ranks have sent to this one. Collective. */
static inline uint64_t soak_expected(struct soak *soak)
{
    uint64_t mine[64] = {0}, all[64 * 64], sum = 0, from;
    for (from = 0; from < soak->ranks; from++)
        mine[from] = word_get(&soak->accepted[from]);
    CHECK_OK(llcl_allgather_bytes(soak->context, mine, sizeof mine, all));
    for (from = 0; from < soak->ranks; from++)
        sum += all[from * 64 + soak->me];
    return sum;
}

/* Collective: sends for a time, and waits until each message is handled and answered. */
static inline void soak_all(struct soak *soak, int64_t span)
{
    pthread_t server;
    uint64_t left, all[64], i, expected, handled;
    CHECK(pthread_create(&server, NULL, soak_server, soak) == 0);
    soak_send_for(soak, span);
    /* The server thread answers retained messages and posts those of `later`, until all ranks have
     * handled all messages. */
    do {
        usleep(200);
        /* Read first: what the handlers of these messages have sent is then among the expected. */
        handled = word_get(&soak->handled.total);
        left = soak_expected(soak) != handled;
        CHECK_OK(llcl_allgather_bytes(soak->context, &left, sizeof left, all));
        for (left = 0, i = 0; i < soak->ranks; i++)
            left += all[i];
    } while (left);
    CHECK_OK(llcl_flush_all(soak->context));
    fence(soak->context);
    word_set(&soak->over, 1);
    CHECK(pthread_join(server, NULL) == 0);
    while (soak_serve(soak))
        ;
    expected = soak_expected(soak);
    CHECK_EQUAL(word_get(&soak->handled.total), expected);
    CHECK(expected > 20);
    printf("rank %u: %llu messages handled, %llu forwarded, %llu of them later\n", soak->me,
           (unsigned long long)expected, (unsigned long long)word_get(&soak->forwarded),
           (unsigned long long)soak->later.count);
    fence(soak->context);
    region_drop(&soak->pulled);
    region_drop(&soak->incoming);
}

#endif
