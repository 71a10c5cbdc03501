//! libllcl: a low-level communication library for programs that run as several ranks. Its interface
//! is C's, `include/llcl.h`, generated from [`api`].
//!
//! The modules are layers; each imports only from the layers below it (`tests/layers.rs`):
//!
//! | module | what it has |
//! |---|---|
//! | [`api`] | the C functions: pointers checked, panics stopped |
//! | [`coll`] | collectives: algorithms as data, the sessions that run them, teams, plans |
//! | [`core`] | contexts, regions, the blocking calls, the library's threads |
//! | [`engine`] | command queue, doorbell, roles, operations in flight, active messages |
//! | [`transport`] | how the memory of a rank is reached, and how messages get there |
//! | [`bootstrap`] | which ranks there are, who lives, and the exchange of cards |
//! | [`util`] | statuses, configuration, memory, futexes, pins |
//!
//! Where a write goes:
//!
//! ```text
//!  C program        llcl_try_write_async(context, &params)
//!                         |
//!  src/api/rma.rs         |  checks pointers, makes a Request of the struct, stops panics
//!                         v
//!  src/core/rma.rs        write_word, write_quickly ------ memory that is mapped: stores at once
//!                         |  anything else
//!  src/core/submit.rs     submit
//!                         |
//!         +---------------+----------------------------------+
//!         | mode auto, direct: the calling thread tries      | mode offload, LLCL_FLAG_DEFER,
//!         v                                                  | or the caller cannot do it itself
//!  src/engine/by_caller.rs  attempt                          v
//!         |  copies mapped memory, or lets the       src/engine/lane.rs  put -> command_queue.rs
//!         |  kernel copy (transport/node)                    |  the caller takes the role, or
//!         |                                                  |  doorbell.rs wakes progress thread
//!         |                                                  v
//!         |                                          src/engine/executor.rs  execute_one
//!         |                                                  |  itself, as by_caller; or by a network
//!         |                                                  |  (by_wire.rs); or by the owner:
//!         |                                                  v
//!         |                                          src/engine/by_owner.rs -> in_flight.rs (tag)
//!         |                                                  |  a request in a slot of the owner
//!         |                                                  v
//!         |                                          src/transport/memory/message_sender.rs
//!         |                                                  .
//!         |                                          the owner's completer.rs: copies, answers
//!         |                                                  .
//!         |                                          src/engine/completer.rs  complete (by tag)
//!         v                                                  |
//!  src/engine/completion.rs  fire <--------------------------+
//!                         |
//!  C program        its callback runs, or its word changes
//! ```
//!
//! `docs/architecture.md` describes the rest, `docs/contributing.md` where to begin with a change.

pub mod api;
pub mod bootstrap;
pub mod coll;
pub mod core;
pub mod engine;
pub mod transport;
pub mod util;

/// If the system gives no memory, small allocations come from a reserve, and calls that make new
/// objects are refused.
#[cfg(not(all(test, not(loom))))]
#[global_allocator]
static ALLOCATOR: util::reserve::Reserve = util::reserve::Reserve;

#[cfg(all(test, not(loom)))]
#[global_allocator]
static ALLOCATOR: util::counted::Counted = util::counted::Counted(util::reserve::Reserve);
