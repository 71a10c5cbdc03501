//! How the steps of a plan are run: sessions in memory that all ranks map (`session`, `record`),
//! the queues in them (`queue`), the end of a round (`ends`), and the threads of any rank that run
//! what a signal releases (`shared`).

pub mod binding;
mod combiner;
pub mod members;
pub mod queue;
pub mod record;
pub mod round_end;
pub mod session;
pub mod shared;
mod worklist;
