//! Layer 5: persistent collectives. A collective is planned once (`plan`), as a schedule
//! (`schedule`) that an algorithm (`algorithms`) makes from numbers alone; the session of each rank
//! (`runner::session`) lies in memory that all its peers map, and the thread that delivers a signal
//! runs what the signal releases (`runner::shared`).

mod agreement;
pub mod algorithms;
pub mod arena;
pub mod cache;
pub mod choices;
pub mod collectives;
pub mod nodes;
pub mod objects;
pub mod plan;
pub mod problem;
pub mod reduction;
pub mod rounds;
pub mod runner;
pub mod schedule;
pub mod select;
#[cfg(test)]
mod simulator;
pub mod tables;
pub mod team;
pub mod touched;
