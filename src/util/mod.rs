//! Layer 0: what every other layer may use and what itself uses nothing of ours.

pub mod bell;
pub mod config;
pub mod cores;
pub mod counts;
pub mod futex;
pub mod memory;
pub mod narrow;
pub mod patience;
pub mod pin;
pub mod prefetch;
pub mod random;
pub mod room;
pub mod socket;
pub mod status;
pub mod sync;
pub mod thread;
