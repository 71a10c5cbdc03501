/* Shared by the tests of active messages: parameters, a ledger of the messages that have arrived,
 * and a list of messages that a handler could not post at once. */
#ifndef AM_H
#define AM_H
#include "shared.h"

/* So long that the runner's time limit ends a test first: floods are slow under sanitizers and on
 * machines with few cores. */
#define AM_PATIENCE_NS INT64_C(90000000000)

/* am_await() waits as long as the word changes at least once in so long: a count that stands still
 * is lost. Each wait takes the whole time, since short ones would hide a lost wake-up. */
#define AM_STILL_NS INT64_C(25000000000)

static inline void am_await(llcl_context_t *context, const uint64_t *word, uint64_t at_least,
                            const char *file, int line)
{
    llcl_status_t status;
    uint64_t before;
    do {
        before = word_get(word);
        status = llcl_wait_word(context, word, at_least, AM_STILL_NS);
    } while (status == LLCL_ERR_TIMEOUT && word_get(word) != before);
    if (status != LLCL_OK)
        fprintf(stderr, "a word stands at %llu, expected %llu\n", (unsigned long long)word_get(word),
                (unsigned long long)at_least);
    test_status(file, line, "llcl_wait_word", "LLCL_OK", status, LLCL_OK);
}

#define AM_AWAIT(context, word, at_least) \
    am_await((context), (word), (at_least), __FILE__, __LINE__)

/* Zeroed memory for handlers and callbacks, which may use it until the context has ended. It is
 * never freed. The list am_all_kept refers to it, so leak checkers do not report it. */
struct am_kept {
    struct am_kept *next;
    uint64_t align;
};

static struct am_kept *am_all_kept;

static inline void *am_new(size_t size)
{
    struct am_kept *kept = calloc(1, sizeof *kept + size);
    CHECK(kept != NULL);
    kept->next = __atomic_load_n(&am_all_kept, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&am_all_kept, &kept->next, kept, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
        ;
    return kept + 1;
}

/* Chooses the handlers by the execution mode, so that each kind is tested: serial in auto, polled
 * in direct, parallel in offload. */
static inline uint32_t am_handlers_by_mode(void)
{
    return test_mode_is("direct")    ? LLCL_AM_HANDLERS_POLLED
           : test_mode_is("offload") ? LLCL_AM_HANDLERS_PARALLEL
                                     : LLCL_AM_HANDLERS_SERIAL;
}

/* Few slots, and handlers that run in calls that wait or poll only. */
static inline void am_few_polled(llcl_config_t *config)
{
    config->am_slots = 4;
    config->am_handlers = LLCL_AM_HANDLERS_POLLED;
}

/* A handler that adds 1 to the word `data`. */
static inline void am_count_up(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

static inline llcl_am_params_t am_to(uint32_t peer, uint32_t id, const void *header, size_t size)
{
    llcl_am_params_t am;
    memset(&am, 0, sizeof am);
    am.peer = peer;
    am.id = id;
    am.header = size ? header : NULL;
    am.header_size = size;
    return am;
}

static inline llcl_am_view_t am_view(const llcl_am_t *message)
{
    llcl_am_view_t view;
    memset(&view, 0x5a, sizeof view);
    CHECK_OK(llcl_am_view(message, &view));
    return view;
}

/* Each of these returns one field of am_view(). */
static inline uint32_t am_source(const llcl_am_t *message)
{
    return am_view(message).source;
}

static inline const void *am_header(const llcl_am_t *message, size_t *size)
{
    llcl_am_view_t view = am_view(message);
    if (size)
        *size = view.header_size;
    return view.header;
}

static inline const void *am_payload(const llcl_am_t *message, size_t *size)
{
    llcl_am_view_t view = am_view(message);
    if (size)
        *size = view.payload_size;
    return view.payload;
}

static inline int am_wants_reply(const llcl_am_t *message)
{
    return (am_view(message).flags & LLCL_AM_WANTS_REPLY) != 0;
}

static inline void am_register(llcl_context_t *context, uint32_t id, llcl_am_handler_fn handler,
                               void *data)
{
    POST(llcl_am_register(context, id, handler, data));
}

static inline llcl_stats_t am_stats(llcl_context_t *context)
{
    llcl_stats_t stats;
    memset(&stats, 0x5a, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(llcl_stats_get(context, &stats));
    return stats;
}

static inline llcl_capabilities_t am_limits(llcl_context_t *context)
{
    llcl_capabilities_t found;
    memset(&found, 0, sizeof found);
    found.struct_size = sizeof found;
    CHECK_OK(llcl_query(context, &found));
    return found;
}

/* The most bytes of a payload to a peer. */
static inline uint32_t am_payload_to(llcl_context_t *context, uint32_t peer)
{
    llcl_peer_info_t info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    CHECK_OK(llcl_query_peer(context, peer, &info));
    CHECK_EQUAL(info.am_medium, am_limits(context).am_medium);
    return info.am_payload;
}

/* A bit for each message of each sender. ledger_mark() fails the test if a message comes twice,
 * ledger_await() if one is missing. */
struct ledger {
    uint32_t senders, each;
    uint64_t *bits;
    uint64_t total;
};

static inline void ledger_make(struct ledger *ledger, uint32_t senders, uint32_t each)
{
    ledger->senders = senders;
    ledger->each = each;
    ledger->total = 0;
    ledger->bits = am_new(((size_t)senders * each + 63) / 64 * 8);
}

static inline void ledger_mark(struct ledger *ledger, uint32_t sender, uint32_t number)
{
    uint64_t at = (uint64_t)sender * ledger->each + number, bit = UINT64_C(1) << at % 64, old;
    CHECK(sender < ledger->senders && number < ledger->each);
    old = __atomic_fetch_or(&ledger->bits[at / 64], bit, __ATOMIC_ACQ_REL);
    if (old & bit)
        fprintf(stderr, "message %u of sender %u came twice\n", number, sender);
    CHECK(!(old & bit));
    word_add(&ledger->total, 1);
}

/* Prints the first message that is missing, before the test fails. */
static inline void ledger_print_missing(const struct ledger *ledger)
{
    uint64_t at, all = (uint64_t)ledger->senders * ledger->each;
    for (at = 0; at < all; at++) {
        if (!(word_get(&ledger->bits[at / 64]) >> at % 64 & 1)) {
            fprintf(stderr, "%llu of %llu came; missing first: message %u of sender %u\n",
                    (unsigned long long)word_get(&ledger->total), (unsigned long long)all,
                    (unsigned)(at % ledger->each), (unsigned)(at / ledger->each));
            return;
        }
    }
}

static inline void ledger_await(llcl_context_t *context, struct ledger *ledger, int64_t within_ns)
{
    uint64_t all = (uint64_t)ledger->senders * ledger->each;
    llcl_status_t status = llcl_wait_word(context, &ledger->total, all, within_ns);
    if (status != LLCL_OK)
        ledger_print_missing(ledger);
    CHECK_OK(status);
    CHECK_EQUAL(word_get(&ledger->total), all);
}

/* A message that a handler could not post at once. Another thread of the rank posts it by
 * later_drain(). */
struct later_item {
    struct later_item *next;
    llcl_am_params_t am;
    uint64_t header[LLCL_AM_HEADER / 8];
};

struct later {
    pthread_mutex_t lock;
    struct later_item *first;
    uint64_t count; /* the number of messages ever added */
};

static inline void later_make(struct later *later)
{
    CHECK(pthread_mutex_init(&later->lock, NULL) == 0);
    later->first = NULL;
    later->count = 0;
}

/* For handlers and callbacks: posts the message, or adds it to the list, with a copy of the
 * header. */
static inline void later_send(struct later *later, llcl_context_t *context,
                              const llcl_am_params_t *am)
{
    llcl_status_t status = llcl_try_am_async(context, am);
    struct later_item *item;
    if (status <= 0) {
        CHECK_OK(status);
        return;
    }
    item = malloc(sizeof *item);
    CHECK(item != NULL);
    item->am = *am;
    if (am->header_size)
        memcpy(item->header, am->header, am->header_size);
    item->am.header = am->header_size ? item->header : NULL;
    CHECK(pthread_mutex_lock(&later->lock) == 0);
    item->next = later->first;
    later->first = item;
    CHECK(pthread_mutex_unlock(&later->lock) == 0);
    word_add(&later->count, 1);
}

static inline void later_drain(struct later *later, llcl_context_t *context)
{
    struct later_item *item, *next;
    CHECK(pthread_mutex_lock(&later->lock) == 0);
    item = later->first;
    later->first = NULL;
    CHECK(pthread_mutex_unlock(&later->lock) == 0);
    for (; item; item = next) {
        next = item->next;
        CHECK_OK(llcl_am_async(context, &item->am));
        free(item);
    }
}

/* Posts the messages of the list until the word has reached `at_least`. */
static inline void later_await(struct later *later, llcl_context_t *context, const uint64_t *word,
                               uint64_t at_least)
{
    int64_t end = now_ns() + AM_PATIENCE_NS;
    for (;;) {
        llcl_status_t status = llcl_wait_word(context, word, at_least, 2000000);
        if (status == LLCL_OK)
            return;
        CHECK_STATUS(status, LLCL_ERR_TIMEOUT);
        CHECK(now_ns() < end);
        later_drain(later, context);
    }
}

/* A number from the environment, by which the user may set a test's length or seed. */
static inline uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

#endif
