/* The collective operations that are measured, their sizes and buffers: the same for this library and for its peers. */
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

/* Bytes of the two buffers; `size` is the vector's, or that of one rank's block. 0: there is none at this rank. */
size_t coll_send_bytes(coll_op_t op, size_t size, uint32_t ranks);
size_t coll_receive_bytes(coll_op_t op, size_t size, uint32_t ranks);

/* The sizes for an operation, ascending; none is 0, a barrier has one, of 0 bytes. Returns how many. */
#define COLL_MOST_SIZES 8
int coll_sizes(coll_op_t op, uint32_t ranks, int quick, size_t sizes[COLL_MOST_SIZES]);

/* The operations and sizes of which the overlap is measured. */
int coll_op_overlaps(coll_op_t op);
int coll_overlap_sizes(int quick, size_t sizes[COLL_MOST_SIZES]);

/* Fills what rank `rank` sends; checks what it has got after a round: 0, or the number of the first wrong byte and 1. Looks at
   some bytes of large buffers only. Root is rank 0. */
void coll_fill(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, char *send, char *receive);
size_t coll_check(coll_op_t op, size_t size, uint32_t rank, uint32_t ranks, const char *receive);

#endif
