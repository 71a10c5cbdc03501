//! Layer 5: persistent collectives. A collective is planned once (`plan`), as a schedule (`schedule`)
//! that an algorithm (`algorithms`) makes from numbers alone; the session of each rank (`session`) lies in memory that
//! all its peers map, and whoever delivers a signal runs what it releases (`run`).

pub mod algorithms;
mod board;
pub mod collectives;
pub mod combine;
pub mod handle;
pub mod plan;
pub mod problem;
pub mod queue;
pub mod record;
pub mod run;
pub mod schedule;
pub mod select;
pub mod session;
#[cfg(test)]
mod simulator;
pub mod store;
pub mod team;
