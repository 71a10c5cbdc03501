//! Layer 0: what every other layer may use and what itself uses nothing of ours.

pub mod admission;
pub mod backoff;
pub mod bell;
pub mod config;
pub mod cores;
pub mod counters;
pub mod epoll;
pub mod extents;
pub mod fence;
pub mod fork;
pub mod futex;
pub mod memory;
pub mod misspelt;
pub mod narrow;
pub mod once;
pub mod pin;
pub mod prefetch;
pub mod random;
pub mod rendezvous;
pub mod reserve;
pub mod rounding;
pub mod shells;
pub mod socket;
pub mod status;
pub mod sync;
pub mod thread;
