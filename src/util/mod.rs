//! Layer 0: helpers for every other layer. It uses no other layer.

pub mod admission;
pub mod available_memory;
pub mod backoff;
pub mod bell;
pub mod config;
pub mod copy;
pub mod cores;
#[cfg(all(test, not(loom)))]
pub mod counted;
pub mod counters;
pub mod digest;
pub mod epoll;
pub mod extents;
pub mod fence;
pub mod fork;
pub mod futex;
pub mod machine;
pub mod memory;
pub mod misspelt;
pub mod narrow;
pub mod once;
pub mod output;
pub mod own_word;
pub mod pin;
pub mod prefetch;
pub mod quarantine;
pub mod random;
pub mod rendezvous;
pub mod reserve;
pub mod rounding;
pub mod shared_object;
pub mod small_map;
pub mod socket;
pub mod status;
pub mod sync;
pub mod thread;
