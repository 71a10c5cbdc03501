//! Layer 3: how requests get from the threads that make them to the device.

pub mod active;
pub mod atomic;
pub mod command;
mod completer;
pub mod completion;
pub mod direct;
pub mod doorbell;
mod executor;
mod fallback;
pub mod lane;
mod messages;
pub mod queued;
pub mod ring;
mod role;
pub mod routes;
pub mod slots;
mod work;
