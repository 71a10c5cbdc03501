//! libllcl: one-sided reads, writes and atomics, active messages and persistent collectives between
//! the processes of a machine.
//!
//! Conventions, which hold for every function:
//!
//! - Statuses. LLCL_OK is 0. A positive status means "try again": nothing happened and nothing was
//!   kept; its name gives the reason. The one exception is LLCL_DONE, which only requests with
//!   LLCL_FLAG_DONE are answered: the operation has ended, and none of its completions fires. A
//!   negative status is an error; llcl_last_error() then has a sentence that names the parameter,
//!   its value and what was expected.
//! - Handles are opaque pointers, made and ended by matching calls. Contexts, regions, teams and
//!   plans that have ended are refused with LLCL_ERR_STATE, also after the end of their context,
//!   until 256 later ones of their kind have ended. Any other handle that has ended must not be
//!   passed.
//! - Parameter structs are read during the call only. Each has an initialiser for C and C++, such
//!   as LLCL_WRITE_PARAMS_INIT for llcl_write_params_t, which sets every field to 0. Flag bits and
//!   kinds that are not defined here are refused with LLCL_ERR_INVALID, and so is NULL wherever it
//!   is not allowed by name.
//! - Out-parameters are written on success only.
//! - Accepted (LLCL_OK from a function whose name ends in _async) means: each completion that the
//!   request carries fires exactly once, with a status, whatever happens. Refused means: none
//!   fires.
//! - Callbacks run on whatever thread ends the operation: the caller, before the call returns
//!   (unless LLCL_FLAG_DEFER or LLCL_FLAG_DONE is given); a thread that waits in this library; or
//!   one of its own threads. In offload mode it is the progress thread; but a thread that posts
//!   while the command queue is full, or while another thread posts, may execute commands from the
//!   queue, and then runs their callbacks.
//!   Callbacks may post requests by the try functions, and start collectives; they must not block. What a callback posts
//!   may end at once; its own callback then runs after the present one has returned, so a chain of
//!   any length needs no more stack than one link. A thread keeps at most 64 such callbacks
//!   waiting; beyond that the try functions answer LLCL_RETRY_QUEUE_FULL.
//! - Order. Operations of one thread or of several may take effect in any order, except that the
//!   signal of llcl_try_write_signal_async is never seen before its data, and that whatever was
//!   done before an operation was accepted is seen by every thread that sees its effect.
//! - First use. A peer is contacted when it is first used: its memory is mapped as soon as it has
//!   called llcl_init, which takes some 0.1 ms. Until then the try functions answer
//!   LLCL_RETRY_CONNECTING, without waiting, while the contact goes on behind them; other functions
//!   that need the peer wait. A message to a receiver with LLCL_AM_POLICY_DISTRIBUTED also contacts the rank
//!   that keeps the counter of a share. llcl_connect contacts peers beforehand.
//! - Threads. Every function may be called by any thread at any time, except where it says else. No
//!   panic leaves the library; there is no process-wide state to set up, no signal handler and no
//!   constructor.
//! - Signal handlers may call llcl_abort with NULL, and no other function of this library: the
//!   others allocate memory and take locks that the interrupted thread may hold. Let the handler
//!   set a flag, or write to a descriptor, and a thread act on it.
//! - Callbacks and handlers end by returning. One that leaves by an exception, pthread_exit or
//!   cancellation ends the process, with a message that names it; one that leaves by longjmp leaves
//!   behind what its thread held, and other threads may wait for that for ever.
//! - fork(). The child must not use what its parent has made: every call with a context, a region,
//!   a team, a plan or a world of the parent answers LLCL_ERR_STATE there, llcl_finalize in an exit
//!   handler included, and the parent's rank goes on. system(), popen() and posix_spawn() do what
//!   they always do. docs/rules.md has the whole of it.
//! - Death of a peer is reported by LLCL_ERR_PEER_DEAD on everything pending on it, never by a
//!   hang.

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
mod posting;
