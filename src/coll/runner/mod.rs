//! How the steps of a plan are run: sessions in memory that all ranks map (`session`, `record`),
//! the queues in them (`queue`), the end of a round (`round_end`), and the threads of any rank that
//! run what a signal releases (`stepping`: the loops; `shared`: what a step does). What goes to a
//! rank of another node is put into notices (`posted`, `put_sender`), which that rank takes in
//! (`put_receiver`).

pub mod binding;
mod combiner;
pub mod members;
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
