/* Broken if this fails: a message in a slot loses, doubles or changes bytes at some size of header
 * (0 to 64) and payload (none, 0 to 64 KiB), also to oneself; or the handler sees a wrong source,
 * tag or size, or cannot tell an empty payload from none.
 * ranks: 1 2 3
 * policies: acquire limit distributed
 * threads: yes
 * timeout: 60
 */
#include "am.h"

#define MEDIUM 2048
#define MOST_SIZES 160
#define LARGEST 65536
/* A header of each size but 0 meets each fifth size of payload. The eight sizes of headers that
 * have the same number of words meet all of them. */
#define STRIDE 5u

struct rank {
    llcl_context_t *context;
    size_t sizes[MOST_SIZES];
    uint32_t count; /* of sizes */
    struct ledger ledger; /* of (header size, payload size), by source */
};

static void configure(llcl_config_t *config)
{
    config->am_medium = MEDIUM;
    config->am_slots = 64;
}

/* Around what fits into one slot with its header, around words, and around the most. */
static uint32_t sizes(size_t *out)
{
    static const size_t more[] = {127,  128,  129,  255,        256,        257,       511,   512,
                                  1000, 1023, 1024, MEDIUM - 9, MEDIUM - 8, MEDIUM - 1, MEDIUM,
                                  MEDIUM + 1, 65535, LARGEST};
    uint32_t count = 0;
    size_t i;
    for (i = 0; i <= 111; i++)
        out[count++] = i;
    for (i = 0; i < sizeof more / sizeof more[0]; i++)
        out[count++] = more[i];
    CHECK(count % STRIDE == 0 && count <= MOST_SIZES);
    return count;
}

/* The number of the message with this header and payload size `at`: 0, 1, 2, ... without a gap. */
static uint32_t number_of(const struct rank *rank, size_t header, uint32_t at)
{
    uint32_t each = rank->count / STRIDE;
    return header == 0 ? at : rank->count + ((uint32_t)header - 1) * each + at / STRIDE;
}

static uint32_t seed_of(uint32_t source, size_t header, size_t payload)
{
    return (uint32_t)(source * 5 + header * 3 + payload);
}

static uint16_t tag_of(size_t header, size_t payload)
{
    return (uint16_t)(65535 - header * 997 - payload);
}

/* Of the payloads of 0 bytes each second one is none at all. */
static int is_absent(size_t header, size_t payload)
{
    return payload == 0 && header % 2;
}

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    size_t header = 99, payload = 99, i;
    uint32_t source = am_source(message), at = UINT32_MAX;
    const unsigned char *head = am_header(message, &header);
    const unsigned char *body = am_payload(message, &payload);
    uint32_t seed = seed_of(source, header, payload);
    CHECK(header <= LLCL_AM_HEADER);
    CHECK((uintptr_t)head % 8 == 0);
    for (i = 0; i < rank->count; i++)
        if (rank->sizes[i] == payload)
            at = (uint32_t)i;
    CHECK(at != UINT32_MAX);
    CHECK(am_header(message, NULL) == head && am_payload(message, NULL) == body);
    CHECK(pattern_holds(head, header, seed));
    CHECK(pattern_holds(body, payload, seed + 77));
    CHECK_EQUAL(am_wants_reply(message), (header + payload) % 2);
    CHECK_EQUAL(am_view(message).tag, tag_of(header, payload));
    CHECK_EQUAL(am_view(message).id, 7);
    CHECK_EQUAL(am_view(message).kind, LLCL_AM_MEDIUM);
    CHECK_EQUAL(body == NULL, is_absent(header, payload));
    ledger_mark(&rank->ledger, source, number_of(rank, header, at));
}

static void send_all(struct rank *rank, uint32_t peer)
{
    unsigned char head[LLCL_AM_HEADER], *body = am_new(LARGEST);
    uint32_t me = llcl_rank(rank->context), at;
    struct tally local = {0, 0, 0};
    uint64_t done = 0, waited = 0, sent = 0;
    size_t header;
    for (header = 0; header <= LLCL_AM_HEADER; header++) {
        uint32_t stride = header == 0 ? 1 : STRIDE;
        for (at = (uint32_t)header * 2 % stride; at < rank->count; at += stride) {
            size_t payload = rank->sizes[at];
            llcl_am_params_t am = am_to(peer, 7, head, header);
            pattern_fill(head, header, seed_of(me, header, payload));
            pattern_fill(body, payload, seed_of(me, header, payload) + 77);
            am.payload = is_absent(header, payload) ? NULL : body;
            am.tag = tag_of(header, payload);
            am.payload_size = payload;
            if ((header + payload) % 2) {
                am.on_complete = llcl_add_on(&done);
                waited++;
            }
            /* Messages without completions may be sent on another path. */
            if ((header + payload) % 2 || header % 3 == 0) {
                am.on_local = count_in(&local);
                sent++;
            }
            POST(llcl_try_am_async(rank->context, &am));
            /* The header was copied; the payload is ours again when on_local has fired. */
            memset(head, 0xee, sizeof head);
            if (am.on_local.kind == LLCL_COMPLETE_NONE)
                CHECK_OK(llcl_flush(rank->context, peer));
            AWAIT(&local.fired, sent);
            memset(body, 0xee, payload);
        }
    }
    AM_AWAIT(rank->context, &done, waited);
    CHECK_EQUAL(word_get(&done), waited);
    CHECK_EQUAL(word_get(&local.fired), sent);
    CHECK_EQUAL(local.failed, 0);
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    rank->context = context;
    rank->count = sizes(rank->sizes);
    CHECK_EQUAL(am_limits(context).am_medium, MEDIUM);
    CHECK_EQUAL(am_payload_to(context, size - 1), LARGEST);
    ledger_make(&rank->ledger, size, number_of(rank, LLCL_AM_HEADER + 1, 0));
    am_register(context, 7, handle, rank);
    fence(context);
    for (i = 0; i < size; i++)
        send_all(rank, (me + i) % size);
    ledger_await(context, &rank->ledger, AM_PATIENCE_NS);
    fence(context);
    CHECK_EQUAL(word_get(&rank->ledger.total), (uint64_t)size * rank->ledger.each);
}

TEST_MAIN_CONFIG(run, configure)
