//! Layer 5: persistent collectives. The ranks make a plan once (`plan`). An algorithm
//! (`algorithms`) makes a schedule from numbers alone (`schedule`), and each rank lays its part out
//! as a session (`runner::session`) in memory that all its peers map. The thread that delivers a
//! signal runs the steps that the signal releases (`runner::shared`).

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
