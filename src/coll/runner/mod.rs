//! How threads run the steps of a plan. Each rank has a session in memory that all ranks of the
//! plan map (`session`, `record`), with its queues of steps (`queue`) and the words that end its
//! rounds (`round_end`). A thread of any rank may run the steps that a signal makes ready:
//! `stepping` has the loops, `owning` what a queue's owner does beside them, and `shared` the
//! actions of steps. For a rank of another node a step
//! posts a control message (`posted`, `put_sender`), and the receiver stores the bytes and the
//! signal (`put_receiver`).

pub mod binding;
mod combiner;
pub mod members;
pub mod owning;
pub mod posted;
mod put;
pub mod put_receiver;
pub mod put_sender;
pub mod queue;
pub mod record;
pub mod round_end;
pub mod session;
pub mod shared;
pub mod stepping;
mod worklist;

/// Bytes that an Arc allocates: the object behind its two counts.
pub const fn in_arc<T>() -> usize {
    let counts = 2 * size_of::<usize>();
    size_of::<T>() + if align_of::<T>() > counts { align_of::<T>() } else { counts }
}
