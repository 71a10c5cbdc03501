//! libllcl: one-sided reads, writes and atomics, active messages and persistent collectives between
//! the processes of a machine, and over a network between those of several machines.
//!
//! Conventions, which hold for every function:
//!
//! - Statuses. LLCL_OK is 0. A positive status means "try again": nothing happened, nothing was
//!   kept, and the name of the status gives the reason. (Functions that may have written bytes to
//!   the destination by then say so.) The one positive status with another meaning is LLCL_DONE,
//!   which only a request with LLCL_FLAG_DONE gets: the operation has ended, and none of its
//!   completions fires. A negative status is an error; llcl_last_error() then has a sentence that
//!   names the parameter, its value and what was expected.
//! - Handles are opaque pointers. One call makes a handle, and the matching call ends it. The
//!   handle of a context, region, team or plan that has ended is refused with LLCL_ERR_STATE, also
//!   after the end of its context, until 256 more of its kind have ended; after that its address
//!   may belong to a new object. No other handle may be passed after its end.
//! - Parameter structs are read during the call only. Each has an initialiser for C and C++, such
//!   as LLCL_WRITE_PARAMS_INIT for llcl_write_params_t, which sets every field to 0. Flag bits and
//!   kinds that are not defined here are refused with LLCL_ERR_INVALID. So is NULL, except where
//!   the text of a function allows it.
//! - Versions. A struct that later versions may enlarge begins with `struct_size`, which its
//!   initialiser sets; a function refuses every size but the one of its own version. All other
//!   structs, among them the parameters of operations, keep their fields.
//! - Out-parameters are written on success only.
//! - Accepted (LLCL_OK from a function whose name ends in _async) means: each completion that the
//!   request carries fires exactly once, with a status, whatever happens (llcl_finalize names the
//!   one exception). Refused means: none fires.
//! - A callback runs on the thread that ends the operation. This is the caller, before the call
//!   returns (unless LLCL_FLAG_DEFER or LLCL_FLAG_DONE is given); a thread that waits in this
//!   library; or one of the library's own threads. In offload mode it is the progress thread. There
//!   are three exceptions. A thread that posts while the command queue is full, or while another
//!   thread posts, may execute commands from the queue, and then runs their callbacks. A round of a
//!   collective may end in a call of the program that starts it, tests it or waits for it; the
//!   round's callback then runs there. And llcl_finalize may run callbacks on its caller.
//!   Callbacks may post requests by the try functions, and start collectives; they must not block.
//!   A request that a callback posts may end at once. Its own callback then runs after the present
//!   one has returned, so a chain of callbacks of any length needs the stack of one. A thread holds
//!   at most 64 such callbacks back. Beyond that the try functions answer LLCL_RETRY_QUEUE_FULL,
//!   and the progress thread ends the rounds of plans and runs their callbacks.
//! - Order. Operations of one thread or of several may take effect in any order, with two
//!   exceptions. The signal of llcl_try_write_signal_async is never seen before its data. And a
//!   thread that sees a word of 8 bytes which one operation has written (an atomic, a signal, a
//!   value, a write of 8 aligned bytes) also sees everything that the requester had done before it
//!   posted the operation: its stores, and its operations that had completed. docs/memory-model.md
//!   has the details.
//! - Locks. Callbacks may run inside the calls that post, callbacks and handlers inside every call
//!   that waits and inside llcl_progress. A thread that makes such a call must not hold a lock that
//!   a callback or handler takes.
//! - First use. The library contacts a peer when the peer is first used: as soon as the peer has
//!   called llcl_init, the library maps the peer's memory, or connects to it over the network. A
//!   mapping takes some 0.1 ms. Until then the try functions answer LLCL_RETRY_CONNECTING, without
//!   waiting, while the contact goes on in the background; other functions that need the peer wait.
//!   A message to a receiver with LLCL_AM_POLICY_DISTRIBUTED also contacts the rank that keeps the
//!   counter of a share. llcl_connect contacts peers beforehand. If a contact fails, each function
//!   that needs it answers LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM (the peer's memory cannot be
//!   mapped), or LLCL_ERR_UNSUPPORTED (the peer runs on another node, and there is no network). The
//!   next call contacts the peer again.
//! - Threads. Any thread may call any function at any time, except where the function's text says
//!   otherwise. No panic leaves the library; there is no process-wide state to set up, no signal
//!   handler and no constructor.
//! - Signal handlers may call llcl_abort with NULL, and no other function of this library: the
//!   others allocate memory and take locks that the interrupted thread may hold. A handler should
//!   set a flag or write to a descriptor, on which a thread then acts.
//! - Callbacks and handlers must end by returning. If one ends by an exception, pthread_exit or
//!   cancellation, the library ends the process, with a message that names it. If one ends by
//!   longjmp, the locks that the library holds for it stay locked, and other threads may wait for
//!   them for ever.
//! - fork(). The child must not use what its parent has made. In the child every call with a
//!   context, a region, a team, a plan, a message or a world of the parent answers LLCL_ERR_STATE,
//!   llcl_finalize in an exit handler included. A child that is forked inside a callback or handler
//!   must not return from it. The parent's rank goes on. system(), popen() and posix_spawn() work
//!   as without this library. docs/rules.md has the details.
//! - When a peer dies, every operation that is pending on it ends with LLCL_ERR_PEER_DEAD; none
//!   hangs.

// The names are those of C; each is documented for the header, and its safety is the contract
// there.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]
#![warn(missing_docs)]

// In the order of the header; blank lines keep it.
pub mod status;

pub mod completion;

pub mod config;

pub mod life;

pub mod memory;
pub mod message;

pub mod rma;

pub mod small;

pub mod atomics;

pub mod words;

pub mod wait;

pub mod active;

pub mod team;

pub mod peers;
pub mod plan;

pub mod coll;

pub mod coll_now;

pub mod insight;

pub mod noncontiguous;
pub mod placement;

pub mod coll_async;

mod guard;
mod pieces;
mod posting;
mod requests_of_pieces;
