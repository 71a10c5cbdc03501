/* If a rank can attach less than the others, does every rank learn a size that all can attach? */
#include "t.h"

enum { LEAST = 128 << 10 };

int main(int argc, char **argv) {
    const char *rank = getenv("LLCL_RANK");
    CHECK(rank);
    if (atoi(rank) == 1) {
        setenv("GASNET_MAX_SEGSIZE", "128KB", 1);
    }
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    uintptr_t most = gasnet_getMaxGlobalSegmentSize();
    if (gasnet_nodes() > 1) {
        EQUAL(most, LEAST);
    }
    CHECK(gasnet_getMaxLocalSegmentSize() >= most);
    CHECK(gasnet_attach(NULL, 0, most < LEAST ? most : LEAST, 0) == GASNET_OK);
    gasnet_exit(0);
}
