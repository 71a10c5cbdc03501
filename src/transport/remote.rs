//! Operations that a network executes in the memory of a peer: reads, writes and atomics, which the
//! engine hands to the fabric in batches, and the result of a batch.

use crate::transport::address::Address;

/// The result of the completion of a [`What::WriteSignal`] that is no atomic, if the peer has
/// changed the word, or has refused to: no other answer comes.
pub const ANSWERED: u64 = 1;
/// [`Signal::kind`] of all signals but atomics.
pub const NO_ATOMIC: u8 = 0;

/// The signal of a write: how a word at the peer changes when the bytes are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The `LLCL_OP_*` by which the word changes. Where it is no atomic, another number: no word
    /// changes, and the layer above defines what the other fields mean.
    pub op: u8,
    /// The `LLCL_TYPE_*` of the word of an atomic, whose old value the peer answers. Its write has
    /// no bytes. [`NO_ATOMIC`]: the word has the type `LLCL_TYPE_U64`.
    pub kind: u8,
    /// The word.
    pub word: Address,
    /// The operand.
    pub value: u64,
    /// The value that a compare-and-swap expects.
    pub compare: u64,
}

impl Signal {
    /// Whether the peer answers with the old value of the word.
    pub fn is_atomic(&self) -> bool {
        self.kind != NO_ATOMIC
    }
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Copies from the peer.
    Read,
    /// Copies to the peer.
    Write,
    /// Copies to the peer, which then changes a word, and answers: by the completion of the
    /// operation, whose result is then [`ANSWERED`], or by a [`Reply`] for the tag, as it answers
    /// requests. Only where `Fabric::has_signals` says so. An atomic is always answered by the
    /// completion, whose result is the old value; only where `Fabric::has_atomics` says so.
    ///
    /// [`Reply`]: crate::transport::Reply
    WriteSignal(Signal),
    /// Changes a word. The numbers are those of `llcl.h`.
    Atomic {
        /// The `LLCL_OP_*`.
        op: u8,
        /// The `LLCL_TYPE_*` of the word.
        kind: u8,
        /// The operand; for a compare-and-swap the new value.
        operand: u64,
        /// The value that a compare-and-swap expects.
        compare: u64,
    },
}

/// One operation. The bytes at `local` are valid until its completion.
#[derive(Clone, Copy, Debug)]
pub struct Posting {
    /// The engine's tag; [`crate::transport::Sink::ended`] returns it.
    pub tag: u64,
    /// The kind.
    pub what: What,
    /// The local buffer.
    pub local: *mut u8,
    /// Its size in bytes.
    pub size: u64,
    /// The remote address, in the peer's process. See `Fabric::resolver`.
    pub remote: u64,
    /// The network's remote key for it.
    pub key: [u64; 4],
}

// SAFETY: plain data; the buffer at `local` is valid for whichever thread posts it.
unsafe impl Send for Posting {}

/// Why the fabric stopped at an operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It did not stop: the network has taken all operations.
    No,
    /// The network's queue is full, the connection is not there yet, or the network has lost the
    /// peer: try again later.
    Later,
    /// The network cannot execute the operation: request it from the owner.
    NeedsOwner,
}
