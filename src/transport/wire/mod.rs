//! Ranks that only a network reaches: credits by grants, and a network that is simulated, by which
//! tests run what a wire without shared memory needs. Built with the feature `simulated` only.

pub mod grants;
mod packet;
pub mod simulated;
