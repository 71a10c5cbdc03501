/* If a rank can attach less than the others, does every rank learn a size that all can attach? Does
 * each form of GASNET_MAX_SEGSIZE mean what GASNet says? */
#include "t.h"

enum { LEAST = 128 << 10, MIB = 1 << 20 };

/* The size may be a page less, since it is rounded down. */
static void expect(const char *text, double size) {
    gasnett_setenv("GASNET_MAX_SEGSIZE", text);
    double most = (double)gasnet_getMaxLocalSegmentSize();
    if (most > size || most < size - GASNET_PAGESIZE) {
        fprintf(stderr, "segment_sizes: GASNET_MAX_SEGSIZE=%s makes segments of %g bytes, expected %g\n", text, most, size);
        gasnet_exit(1);
    }
}

static void forms(void) {
    double memory = (double)gasnett_getPhysMemSz(1);
    gex_Rank_t on_host;
    gex_System_QueryHostInfo(NULL, &on_host, NULL);
    expect("3", 3 * MIB);
    expect("3MB", 3 * MIB);
    expect("3072 kb ", 3 * MIB);
    expect("3M/P", 3 * MIB);
    expect("0x300000", 3 * MIB);
    expect("0x3 MB", 3 * MIB);
    expect("3 /P", 3 * MIB);
    expect("1.5MB/p", 1.5 * MIB);
    expect("8MB/H", 8.0 * MIB / on_host);
    expect("8 /h", 8.0 * MIB / on_host);
    expect("0.01", memory * 0.01);
    expect("0.01/P", memory * 0.01);
    expect(".02/H", memory * 0.02 / on_host);
    expect("0.5MB", 0.5 * MIB);
}

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
    forms();
    gasnet_exit(0);
}
