/* Broken if this fails: llcl_allgather_bytes_within waits longer than it may for a rank that does
 * not come, writes its result then, can not be gone on with, or brings other bytes than were given;
 * llcl_finalize_within waits for ranks that do not come, or they are not told that this one has
 * left.
 * ranks: 2 3
 * threads: yes
 */
#include "shared.h"

#define TIME_NS 2000000

/* Each rank's bytes have its number and their place in them. */
static void fill(unsigned char *bytes, size_t size, uint32_t rank)
{
    size_t i;
    for (i = 0; i < size; i++)
        bytes[i] = (unsigned char)(rank * 31 + i % 251);
}

/* Rank 0 comes alone; the others come when it says that its time was over. */
static void gathers(llcl_context_t *context, struct shared *words, size_t size, uint64_t turn)
{
    uint32_t rank = llcl_rank(context), ranks = llcl_size(context), r;
    unsigned char *mine = malloc(size + 1), *all = malloc(size * ranks + 1);
    CHECK(mine != NULL && all != NULL);
    fill(mine, size, rank);
    memset(all, 0xee, size * ranks + 1);
    if (rank == 0) {
        CHECK_STATUS(llcl_allgather_bytes_within(context, mine, size, all, TIME_NS), LLCL_ERR_TIMEOUT);
        CHECK(strstr(llcl_last_error(), "rank") != NULL);
        CHECK_STATUS(llcl_allgather_bytes_within(context, mine, size, all, 0), LLCL_ERR_TIMEOUT);
        CHECK_STATUS(llcl_allgather_bytes(context, mine, size + 1, all), LLCL_ERR_STATE);
        for (r = 0; r < size * ranks; r++)
            CHECK_EQUAL(all[r], 0xee);
        for (r = 1; r < ranks; r++) {
            llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
            out.peer = r;
            out.destination = words->remote[r];
            out.value = turn;
            out.size = 8;
            CHECK_OK(llcl_write_value(context, &out));
        }
        CHECK_OK(llcl_allgather_bytes_within(context, mine, size, all, turn % 2 ? -1 : TEST_PATIENCE_NS));
    } else {
        CHECK_OK(llcl_wait_word(context, words->words, turn, TEST_PATIENCE_NS));
        CHECK_OK(llcl_allgather_bytes(context, mine, size, all));
    }
    for (r = 0; r < ranks; r++) {
        fill(mine, size, r);
        CHECK(memcmp(all + r * size, mine, size) == 0);
    }
    CHECK_EQUAL(all[size * ranks], 0xee);
    free(mine);
    free(all);
}

static void refused(llcl_context_t *context)
{
    unsigned char byte = 1;
    CHECK_STATUS(llcl_allgather_bytes_within(NULL, &byte, 1, &byte, -1), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_allgather_bytes_within(context, NULL, 1, &byte, -1), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_allgather_bytes_within(context, &byte, 1, NULL, -1), LLCL_ERR_INVALID);
    CHECK_STATUS(llcl_finalize_within(NULL, -1), LLCL_ERR_INVALID);
}

static void run(llcl_context_t *context)
{
    struct shared words;
    uint32_t rank = llcl_rank(context), ranks = llcl_size(context);
    share(context, ALLOCATED, 4096, &words);
    refused(context);
    gathers(context, &words, 8, 1);
    gathers(context, &words, 300000, 2); /* more than a packet */
    gathers(context, &words, 0, 3);
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    share_end(context, &words);
    if (rank == 0) {
        CHECK_STATUS(llcl_finalize_within(context, TIME_NS), LLCL_ERR_TIMEOUT);
        CHECK(strstr(llcl_last_error(), "other ranks") != NULL);
        CHECK_STATUS(llcl_finalize(context), LLCL_ERR_STATE);
    } else {
        uint64_t never = 0;
        CHECK_STATUS(llcl_wait_word_from(context, &never, 1, TEST_PATIENCE_NS, 0), LLCL_ERR_PEER_DEAD);
        CHECK_OK(llcl_finalize_within(context, ranks == 2 ? -1 : TEST_PATIENCE_NS));
    }
    test_finalized = 1;
}

TEST_MAIN(run)
