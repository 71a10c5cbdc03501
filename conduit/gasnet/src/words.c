/* Writes the words of struct control at peers, by which ranks announce barriers. A rank stores to
 * the memory of a peer that it maps. To a peer behind a wire it sends a write of no bytes with a
 * signal that adds to the word: over MPI the answer to such a write travels with the peer's next
 * one, whereas the answer to an atomic takes a message of its own. */
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
    return (struct word_at){here, control->jobrank, llcl_at(control->remote, offset), 0};
}

/* Sets a word that only this rank writes. Release: a rank that sees the word also sees what this
 * rank has written before. That includes writes to third ranks: a put has ended when its call
 * returns. Writes over a wire may arrive in any order: the word is the sum of those that are
 * there, so never more than its last value if it only grows. */
void word_tell(struct word_at *word, uint64_t value) {
    llcl_write_signal_params_t params = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    if (word->here) {
        atomic_store_explicit(&word->here->value, value, memory_order_release);
        word->told = value;
        return;
    }
    params.peer = word->jobrank;
    params.flags = LLCL_FLAG_PARK;
    params.destination = params.signal = word->remote;
    params.signal_op = LLCL_SIGNAL_ADD;
    params.signal_value = value - word->told;
    word->told = value;
    must(llcl_write_signal_async(job.context, &params), "announcing a barrier to a rank");
}
