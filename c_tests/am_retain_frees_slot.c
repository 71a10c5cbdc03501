/* Broken if this fails: a message that its handler retains keeps its slot, so that a receiver that
 * keeps more messages than it has slots stops its senders; or what it retains changes under it.
 * ranks: 2
 * policies: acquire limit distributed
 * threads: yes
 */
#include "am.h"

#define SLOTS 4
#define MESSAGES 1000u

struct rank {
    llcl_am_t *kept[MESSAGES];
    uint64_t count;
};

static void configure(llcl_config_t *config)
{
    config->am_slots = SLOTS;
}

static void keep(llcl_am_t *message, void *data)
{
    struct rank *rank = data;
    uint32_t number;
    memcpy(&number, am_header(message, NULL), sizeof number);
    CHECK(number < MESSAGES && rank->kept[number] == NULL);
    rank->kept[number] = llcl_am_retain(message);
    CHECK(rank->kept[number] != NULL);
    word_add(&rank->count, 1);
}

static void check(struct rank *rank)
{
    uint32_t i, number;
    for (i = 0; i < MESSAGES; i++) {
        size_t header = 0, payload = 0;
        const void *head = am_header(rank->kept[i], &header);
        memcpy(&number, head, sizeof number);
        CHECK_EQUAL(number, i);
        CHECK(pattern_holds((const unsigned char *)head + 4, header - 4, i));
        CHECK(pattern_holds(am_payload(rank->kept[i], &payload), payload, i + 5));
        CHECK_EQUAL(header, 4 + i % 61);
        CHECK_EQUAL(payload, i % 300);
        CHECK_EQUAL(am_source(rank->kept[i]), 1);
        CHECK_OK(llcl_am_release(rank->kept[i]));
    }
}

static void run(llcl_context_t *context)
{
    struct rank *rank = am_new(sizeof *rank);
    uint32_t i;
    CHECK_EQUAL(am_limits(context).am_slots, SLOTS);
    am_register(context, 9, keep, rank);
    fence(context);
    for (i = 0; i < MESSAGES && llcl_rank(context) == 1; i++) {
        unsigned char header[LLCL_AM_HEADER], payload[300];
        llcl_am_params_t am = am_to(0, 9, header, 4 + i % 61);
        memcpy(header, &i, 4);
        pattern_fill(header + 4, i % 61, i);
        pattern_fill(payload, i % 300, i + 5);
        am.payload = i % 300 ? payload : NULL;
        am.payload_size = i % 300;
        if (test_mode_is("offload")) {
            uint64_t local = 0;
            am.on_local = llcl_store_on(&local);
            CHECK_OK(llcl_am_async(context, &am));
            AM_AWAIT(context, &local, 1);
        } else {
            CHECK_OK(llcl_am_async(context, &am));
        }
    }
    if (llcl_rank(context) == 0) {
        AM_AWAIT(context, &rank->count, MESSAGES);
        CHECK(am_stats(context).slots_high_water <= SLOTS);
        check(rank);
    }
    fence(context);
}

TEST_MAIN_CONFIG(run, configure)
