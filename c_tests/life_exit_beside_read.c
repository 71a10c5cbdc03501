/* Broken if this fails: llcl_exit waits for ever for a thread that reads from a stream.
 * ranks: 2
 * exit: 23
 */
#include "test.h"

static void *read_line(void *pipe)
{
    char line[8];
    CHECK(fgets(line, sizeof line, pipe) != NULL);
    return NULL;
}

/* The other rank goes on, and does not learn that this one waits. */
static void run(llcl_context_t *context)
{
    static uint64_t never;
    int ends[2];
    pthread_t thread;
    if (llcl_rank(context) == 1) {
        CHECK(pipe(ends) == 0);
        CHECK(pthread_create(&thread, NULL, read_line, fdopen(ends[0], "r")) == 0);
        sleep_ms(100);
        llcl_exit(context, 23, 300);
    }
    llcl_wait_word(context, &never, 1, TEST_PATIENCE_NS);
    test_fail(__FILE__, __LINE__, "llcl_exit did not end this rank");
}

TEST_MAIN(run)
