/* Broken if this fails: llcl_am_within takes as much memory as the caller's buffer has, though a
 * reply has at most am_medium bytes; or refuses a buffer for which there is not so much memory.
 * ranks: 2
 */
#include "am.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define CAPACITY ((size_t)1 << 30)

static void answer(llcl_am_t *message, void *data)
{
    (void)data;
    CHECK_OK(llcl_am_reply(message, "here", 4));
}

/* The most memory that was ever resident, in bytes. */
static size_t most_resident(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_maxrss * 1024;
}

static void ask(llcl_context_t *context)
{
    size_t size = 0, before = most_resident();
    llcl_am_params_t am = am_to(1, 2, NULL, 0);
    unsigned char *room = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    am.reply = room;
    am.reply_capacity = CAPACITY;
    am.reply_size = &size;
    CHECK_OK(llcl_am_within(context, &am, TEST_PATIENCE_NS));
    CHECK(size == 4 && memcmp(room, "here", size) == 0);
    CHECK(most_resident() < before + CAPACITY / 4);
    /* The capacity may be any number: only the reply's bytes are written. */
    size = 0;
    memset(room, 0, 4);
    am.reply_capacity = SIZE_MAX;
    CHECK_OK(llcl_am_within(context, &am, TEST_PATIENCE_NS));
    CHECK(size == 4 && memcmp(room, "here", size) == 0);
    CHECK(munmap(room, CAPACITY) == 0);
}

static void run(llcl_context_t *context)
{
    am_register(context, 2, answer, NULL);
    fence(context);
    if (llcl_rank(context) == 0)
        ask(context);
    fence(context);
}

TEST_MAIN(run)
