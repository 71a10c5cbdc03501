//! Layer 4: the context with its regions, threads and blocking calls.

mod among;
pub mod atomics;
pub mod background;
mod blocking;
pub mod context;
mod deadline;
mod duplicate;
pub mod finalize;
mod handler_thread;
pub mod messages;
pub mod noncontiguous;
pub mod poster;
mod progress_thread;
mod reach;
pub mod recall;
pub mod region;
pub mod region_handle;
pub mod rma;
pub mod services;
pub mod shared_region;
pub mod stats;
pub mod submit;
mod wait_fd;
pub mod wait_word;
pub mod watch;
