//! Layer 4: the context and what hangs on it.

pub mod active;
pub mod agenda;
pub mod atomics;
pub mod context;
mod finalize;
pub mod ground;
pub mod handle;
mod handling;
mod progress;
pub mod region;
mod rest;
pub mod rma;
pub mod stats;
pub mod submit;
pub mod wait;
