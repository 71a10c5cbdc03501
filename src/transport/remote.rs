//! Reads, writes and atomics that a network executes in the memory of a peer, as the engine hands
//! them to the fabric in batches, and what became of a batch.

use crate::util::status::Status;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Copies from the peer.
    Read,
    /// Copies to the peer.
    Write,
    /// Changes a word; numbers as in the C interface.
    Atomic {
        /// The operation.
        op: u8,
        /// The word's type.
        kind: u8,
        /// First number.
        operand: u64,
        /// What a compare-and-swap compares with.
        compare: u64,
    },
}

/// One operation. The bytes at `local` are valid until its end is told.
#[derive(Clone, Copy, Debug)]
pub struct Posting {
    /// Names it; its end brings it back ([`crate::transport::Sink::ended`]).
    pub tag: u64,
    /// What is to be done.
    pub what: What,
    /// This rank's side.
    pub local: *mut u8,
    /// How many bytes.
    pub size: u64,
    /// The peer's side: an address there, and the network's key for it. See `Fabric::resolver`.
    pub remote: u64,
    /// The key.
    pub key: [u64; 4],
}

// SAFETY: data, as an engine's command: the bytes are valid wherever it is posted.
unsafe impl Send for Posting {}

/// Why the first operation of a batch that was not taken was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All were taken.
    No,
    /// There is no room, or no connection yet: again after a while.
    Later,
    /// The network cannot do it: the owner must be asked.
    NeedsOwner,
    /// It has failed.
    Failed(Status),
}
