#include "coll_ops.h"

#include <string.h>

#define MOST_BUFFER ((size_t)32 << 20) /* bytes of one rank; with many ranks the largest blocks are left out */

static const char *const names[COLL_OPS] = {"barrier", "broadcast", "allreduce", "reduce",         "gather",
                                            "scatter", "allgather", "alltoall",  "reduce_scatter", "scan",
                                            "exscan"};

const char *coll_op_name(coll_op_t op) { return names[op]; }

int coll_op_by_name(const char *name)
{
    for (int op = 0; op < COLL_OPS; op++)
        if (strcmp(name, names[op]) == 0)
            return op;
    return -1;
}

int coll_op_combines(coll_op_t op)
{
    return op == COLL_ALLREDUCE || op == COLL_REDUCE || op == COLL_REDUCE_SCATTER || op == COLL_SCAN ||
           op == COLL_EXSCAN;
}

size_t coll_send_bytes(coll_op_t op, size_t size, uint32_t ranks)
{
    switch (op) {
    case COLL_BARRIER:
    case COLL_BROADCAST: return 0;
    case COLL_SCATTER:
    case COLL_ALLTOALL:
    case COLL_REDUCE_SCATTER: return size * ranks;
    default: return size;
    }
}

size_t coll_receive_bytes(coll_op_t op, size_t size, uint32_t ranks)
{
    switch (op) {
    case COLL_BARRIER: return 0;
    case COLL_GATHER:
    case COLL_ALLGATHER:
    case COLL_ALLTOALL: return size * ranks;
    default: return size;
    }
}

int coll_sizes(coll_op_t op, uint32_t ranks, int quick, size_t sizes[COLL_MOST_SIZES])
{
    /* A quick run leaves the last one out. */
    static const size_t all[] = {8, 1024, 65536, 1048576, 16777216};
    if (op == COLL_BARRIER) {
        sizes[0] = 0;
        return 1;
    }
    int count = 0;
    for (int i = 0; i < (quick ? 4 : 5); i++) {
        size_t buffer = coll_send_bytes(op, all[i], ranks) > coll_receive_bytes(op, all[i], ranks)
                            ? coll_send_bytes(op, all[i], ranks)
                            : coll_receive_bytes(op, all[i], ranks);
        if (buffer <= MOST_BUFFER && !(ranks > 2 && all[i] > 1048576 && op >= COLL_MAIN_SET))
            sizes[count++] = all[i];
    }
    return count;
}

int coll_op_overlaps(coll_op_t op)
{
    return op == COLL_BROADCAST || op == COLL_ALLREDUCE || op == COLL_ALLGATHER || op == COLL_ALLTOALL;
}

int coll_overlap_sizes(int quick, size_t sizes[COLL_MOST_SIZES])
{
    static const size_t full[] = {1024, 16384, 65536, 1048576, 16777216}, few[] = {1024, 65536, 1048576};
    memcpy(sizes, quick ? few : full, quick ? sizeof few : sizeof full);
    return quick ? 3 : 5;
}

/* ---- contents ---- */

/* Byte `i` of the data that `from` sends to `to`. */
static char byte_of(uint32_t from, uint32_t to, size_t i) { return (char)(7 * from + 31 * to + i + (i >> 8) + 1); }

/* Number `i` of the data of `from`. Sums of such numbers are exact. */
static double number_of(uint32_t from, size_t i) { return (double)(from + 1) * (double)(i % 64 + 1); }

static void fill_bytes(char *to, size_t size, uint32_t from, uint32_t peer)
{
    for (size_t i = 0; i < size; i++)
        to[i] = byte_of(from, peer, i);
}

void coll_fill(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, char *send, char *receive)
{
    size_t sent = coll_send_bytes(op, size, ranks);
    memset(receive, 0, coll_receive_bytes(op, size, ranks));
    if (op == COLL_BROADCAST && rank == 0)
        fill_bytes(receive, size, 0, 0);
    if (coll_op_combines(op)) {
        double *numbers = (double *)(void *)send;
        for (size_t i = 0; i < sent / sizeof(double); i++)
            numbers[i] = number_of(rank, i);
        return;
    }
    if (sent == 0)
        return;
    for (size_t block = 0; block < sent / size; block++)
        fill_bytes(send + block * size, size, rank, (uint32_t)block);
}

static size_t check_numbers(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, const char *receive)
{
    const double *got = (const double *)(const void *)receive;
    size_t count = size / sizeof(double), step = count > 4096 ? 509 : 1;
    size_t first = op == COLL_REDUCE_SCATTER ? count * rank : 0;
    uint32_t up_to = op == COLL_SCAN ? rank + 1 : op == COLL_EXSCAN ? rank : ranks;
    if (up_to == 0) /* the output of rank 0 */
        return 0;
    for (size_t i = 0; i < count; i += step) {
        double expected = 0;
        for (uint32_t from = 0; from < up_to; from++)
            expected += number_of(from, first + i);
        if (got[i] != expected)
            return i * sizeof(double) + 1;
    }
    return 0;
}

size_t coll_check(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, const char *receive)
{
    if (op == COLL_BARRIER || ((op == COLL_REDUCE || op == COLL_GATHER) && rank != 0))
        return 0;
    if (coll_op_combines(op))
        return check_numbers(op, size, rank, ranks, receive);
    size_t bytes = coll_receive_bytes(op, size, ranks), step = bytes > 65536 ? 4093 : 1;
    for (size_t i = 0; i < bytes; i += step) {
        uint32_t block = (uint32_t)(i / size);
        uint32_t from = bytes > size ? block : 0; /* a single block comes from the root */
        uint32_t to = op == COLL_ALLTOALL || op == COLL_SCATTER ? rank : 0;
        if (receive[i] != byte_of(from, to, i % size))
            return i + 1;
    }
    return 0;
}
