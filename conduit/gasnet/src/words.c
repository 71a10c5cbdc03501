/* Writes the words of struct control at peers, by which ranks announce barriers and their exit. A
 * rank stores to the memory of a peer that it maps, and uses remote atomics for a peer behind a
 * wire. */
#include "internal.h"

struct control_at control_find(gex_Rank_t jobrank, llcl_remote_t remote) {
    struct control_at found = {NULL, jobrank, remote};
    if (!is_far(jobrank)) {
        found.here = llcl_remote_pointer(job.context, jobrank, remote, sizeof(struct control));
        if (!found.here) {
            fatal("the memory of rank %u for barriers cannot be mapped: %s", jobrank, llcl_last_error());
        }
    }
    return found;
}

struct word_at word_find(const struct control_at *control, size_t offset) {
    struct word *here = control->here ? (struct word *)((char *)control->here + offset) : NULL;
    return (struct word_at){here, control->jobrank, llcl_at(control->remote, offset)};
}

/* Release: a rank that sees the word also sees what this rank has written before. That includes
 * writes to third ranks: a put has ended when its call returns. */
void word_tell(const struct word_at *word, uint32_t op, uint64_t value) {
    llcl_atomic_params_t params = LLCL_ATOMIC_PARAMS_INIT;
    if (word->here) {
        /* This rank alone writes the word, in order, so a store does what `op` asks for. */
        atomic_store_explicit(&word->here->value, value, memory_order_release);
        return;
    }
    params.peer = word->jobrank;
    params.flags = LLCL_FLAG_PARK;
    params.target = word->remote;
    params.op = op;
    params.type = LLCL_TYPE_U64;
    params.operand = value;
    must(llcl_atomic_async(job.context, &params), "announcing a barrier to a rank");
}
