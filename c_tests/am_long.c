/* Broken if this fails: the payload of a LONG message is not, byte for byte, where the sender named
 * it before the handler runs; at some size, in allocated or registered memory on either side, with
 * or without copies by the kernel; or bytes beside it change.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 */
#include "am.h"

#define REST 64 /* bytes that must not change, on either side */
#define FAST_LARGEST 65537

struct rank {
    llcl_context_t *context;
    struct shared targets[MEMORY_KINDS];
    uint64_t handled;
};

struct order { /* the header */
    uint32_t kind, seed;
    uint64_t size, offset;
};

static void handle(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    struct order order;
    size_t header = 0, payload = 0;
    const void *head = am_header(message, &header);
    const unsigned char *body = am_payload(message, &payload);
    const unsigned char *place;
    CHECK_EQUAL(header, sizeof order);
    memcpy(&order, head, sizeof order);
    place = rank->targets[order.kind].bytes + order.offset;
    CHECK_EQUAL(payload, order.size);
    if (payload) {
        CHECK(body == place);
        CHECK(pattern_holds(body, payload, order.seed));
    }
    CHECK(bytes_are(place - REST, REST, 0));
    CHECK(bytes_are(place + payload, REST, 0));
    CHECK_EQUAL(am_view(message).kind, LLCL_AM_LONG);
    CHECK_EQUAL(am_view(message).address.key, 0);
    word_add(&rank->handled, 1);
}

static uint64_t send_all(struct rank *rank, uint32_t peer, int from, int to)
{
    struct shared mine;
    uint64_t sent = 0;
    size_t i;
    region_make(rank->context, from, TEST_LARGEST + 8, &mine);
    for (i = 0; i < TEST_SIZES; i++) {
        struct order order = {0, 0, 0, 0};
        llcl_am_params_t am;
        struct tally local = {0, 0, 0};
        uint64_t done = 0;
        if (test_in_threads() && test_sizes[i] > FAST_LARGEST)
            continue;
        order.kind = (uint32_t)to;
        order.seed = (uint32_t)(i * 3 + peer + 1);
        order.size = test_sizes[i];
        order.offset = REST + i % 8;
        pattern_fill(mine.bytes + i % 3, order.size, order.seed);
        am = am_to(peer, 0, &order, sizeof order);
        am.kind = LLCL_AM_LONG;
        am.flags = i % 4 == 3 ? LLCL_FLAG_DEFER : 0;
        am.source = llcl_region_local(mine.region, i % 3);
        am.destination = remote_at(&rank->targets[to], peer, order.offset);
        am.payload_size = order.size;
        am.on_local = count_in(&local);
        am.on_complete = llcl_add_on(&done);
        POST(llcl_try_am_async(rank->context, &am));
        AWAIT(&local.fired, 1);
        CHECK_EQUAL(local.failed, 0);
        AM_AWAIT(rank->context, &done, 1);
        CHECK_EQUAL(done, 1);
        /* The place is clean again for the next one. */
        memset(mine.bytes, 0, order.size + 8);
        if (order.size) {
            llcl_write_params_t write = {0};
            write.peer = peer;
            write.source = llcl_region_local(mine.region, 0);
            write.destination = am.destination;
            write.size = order.size;
            CHECK_OK(llcl_write(rank->context, &write));
        }
        sent++;
    }
    region_drop(&mine);
    return sent;
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t me = llcl_rank(context), size = llcl_size(context), turn, i;
    uint64_t each = 0;
    int kind, from;
    rank->context = context;
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share(context, kind, TEST_LARGEST + 4 * REST, &rank->targets[kind]);
    am_register(context, 0, handle, rank);
    /* One sender at a time: the places are the same. */
    for (turn = 0; turn < size; turn++) {
        fence(context);
        for (i = 0; i < size && turn == me; i++)
            for (kind = 0; kind < MEMORY_KINDS; kind++)
                for (from = 0; from < MEMORY_KINDS; from++)
                    each += send_all(rank, i, from, kind);
    }
    fence(context);
    CHECK_EQUAL(word_get(&rank->handled), each);
    for (kind = 0; kind < MEMORY_KINDS; kind++)
        share_end(context, &rank->targets[kind]);
}

TEST_MAIN(run)
