/* Broken if this fails: a read of registered memory that its owner frees and registers again
 * meanwhile, whole or in pieces, is answered LLCL_OK and has brought bytes of the other region.
 * ranks: 2
 * modes: auto offload
 * cma: on
 */
#include "shared.h"

#define WORDS 8192u
#define TIME_NS INT64_C(500000000)

/* What the owner says of its present region; changed under an odd number. */
struct board {
    uint64_t sequence, generation, over;
    llcl_remote_t at;
};

static void register_again(llcl_context_t *context, struct board *board)
{
    int64_t end = now_ns() + TIME_NS;
    uint64_t generation, i, pause;
    uint64_t *memory = malloc(WORDS * 8);
    CHECK(memory != NULL);
    for (generation = 1; now_ns() < end; generation++) {
        llcl_region_t *region = NULL;
        for (i = 0; i < WORDS; i++)
            word_set(&memory[i], generation);
        CHECK_OK(llcl_region_register(context, memory, WORDS * 8, 0, &region));
        word_add(&board->sequence, 1);
        board->generation = generation;
        board->at = llcl_region_remote(region, 0);
        word_add(&board->sequence, 1);
        for (pause = 0; pause < generation % 64 * 200; pause++)
            (void)word_get(&board->over);
        /* Sometimes long enough for a read by the library's thread. */
        if (generation % 4 == 0)
            usleep((useconds_t)(generation % 64 * 10));
        CHECK_OK(llcl_region_free(region));
    }
    word_set(&board->over, 1);
    free(memory);
}

static llcl_status_t read_whole(llcl_context_t *context, llcl_remote_t from, const struct shared *mine)
{
    llcl_read_params_t read = {0};
    read.peer = 0;
    read.source = from;
    read.destination = llcl_region_local(mine->region, 0);
    read.size = WORDS * 8;
    read.on_complete = llcl_no_completion();
    return llcl_read(context, &read);
}

/* Four eighths of the region, so half of the words. */
static llcl_status_t read_pieces(llcl_context_t *context, llcl_remote_t from, const struct shared *mine)
{
    llcl_strided_params_t read = {0};
    read.peer = 0;
    read.remote = from;
    read.local = llcl_region_local(mine->region, 0);
    read.size = WORDS;
    read.dimensions = 1;
    read.extents[0] = 4;
    read.local_strides[0] = WORDS;
    read.remote_strides[0] = 2 * WORDS;
    read.on_complete = llcl_no_completion();
    return llcl_read_strided(context, &read);
}

static void read_on(llcl_context_t *context, struct board *board, struct shared *mine)
{
    uint64_t good = 0, gone = 0, words = 0, i;
    while (!word_get(&board->over)) {
        uint64_t sequence = word_get(&board->sequence), generation = board->generation;
        llcl_remote_t from = board->at;
        llcl_status_t status;
        /* An addition, so that the loads above are not done after it. */
        if (sequence % 2 || sequence == 0 || word_add(&board->sequence, 0) != sequence)
            continue;
        words = words == WORDS ? WORDS / 2 : WORDS;
        status = words == WORDS ? read_whole(context, from, mine) : read_pieces(context, from, mine);
        if (status != LLCL_OK) {
            CHECK_STATUS(status, LLCL_ERR_KEY);
            gone++;
            continue;
        }
        good++;
        for (i = 0; i < words; i++)
            CHECK_EQUAL(mine->words[i], generation);
    }
    printf("%llu reads, %llu of a region that was gone\n", (unsigned long long)good,
           (unsigned long long)gone);
}

static void run(llcl_context_t *context)
{
    struct shared board, mine;
    share(context, ALLOCATED, sizeof(struct board), &board);
    region_make(context, ALLOCATED, WORDS * 8, &mine);
    if (llcl_rank(context) == 0)
        register_again(context, (struct board *)(void *)board.bytes);
    else
        read_on(context, llcl_remote_pointer(context, 0, board.remote[0], sizeof(struct board)),
                &mine);
    fence(context);
    region_drop(&mine);
    share_end(context, &board);
}

TEST_MAIN(run)
