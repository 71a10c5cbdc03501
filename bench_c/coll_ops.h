/* The measured collective operations, their sizes and buffers, for this library and for the
 * MPIs. */
#ifndef LLCL_BENCH_COLL_OPS_H
#define LLCL_BENCH_COLL_OPS_H

#include "bench.h"

typedef enum coll_op {
    COLL_BARRIER,
    COLL_BROADCAST,
    COLL_ALLREDUCE,
    COLL_REDUCE,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_ALLGATHER,
    COLL_ALLTOALL,
    COLL_REDUCE_SCATTER,
    COLL_SCAN,
    COLL_EXSCAN,
    COLL_OPS
} coll_op_t;

#define COLL_MAIN_SET 3 /* the operations before this one are compared with targets, and more often */

const char *coll_op_name(coll_op_t op);
int coll_op_by_name(const char *name); /* -1: none */
int coll_op_combines(coll_op_t op);    /* doubles are added; otherwise bytes are moved */

/* The bytes of the two buffers. `size`: the bytes of the vector, or of one rank's block. 0: this
 * rank has no such buffer. */
size_t coll_send_bytes(coll_op_t op, size_t size, uint32_t ranks);
size_t coll_receive_bytes(coll_op_t op, size_t size, uint32_t ranks);

/* Returns the number of sizes for an operation, and writes them in ascending order. A barrier has
 * one size, 0; no other operation has a size of 0. */
#define COLL_MOST_SIZES 8
int coll_sizes(coll_op_t op, uint32_t ranks, int quick, size_t sizes[COLL_MOST_SIZES]);

/* Whether the overlap of an operation is measured. */
int coll_op_overlaps(coll_op_t op);
int coll_overlap_sizes(int quick, size_t sizes[COLL_MOST_SIZES]);

/* coll_fill fills the send buffer of a rank. coll_check checks its receive buffer after a round, of
 * large buffers some bytes only: it returns 0, or the index of the first wrong byte plus 1. Rank 0
 * is the root. */
void coll_fill(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, char *send, char *receive);
size_t coll_check(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, const char *receive);

#endif
