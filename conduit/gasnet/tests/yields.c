/* Does a waiting rank yield its core as often as the argument says, in 4,096 polls? That depends on
 * the cores that the ranks of its machine may use. */
#include "t.h"

static __thread int counts;
static unsigned yields;

/* In place of the C library's function, for the conduit and libllcl. */
int sched_yield(void) {
    yields += counts;
    return 0;
}

int main(int argc, char **argv) {
    unsigned rounds = 0, expected;
    CHECK(argc == 2);
    expected = (unsigned)atoi(argv[1]);
    begin(NULL, 0);
    barrier();
    counts = 1;
    while (rounds < 4096) {
        gexl_pause(&rounds);
    }
    counts = 0;
    /* A poll of libllcl yields in a few cases, too. */
    CHECK(yields >= expected);
    CHECK(yields < expected + 16);
    end();
}
