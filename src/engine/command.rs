//! An operation as data: one type from the caller to the transports. `engine::queue_entry` has its
//! form in the queue.

use crate::engine::atomic::{kind, width};
use crate::engine::completion::Completion;
use crate::transport::address::Address;
use crate::transport::waiters::Waiters;
use crate::util::status::Status;

/// The operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Op(pub u8);

impl Op {
    /// Does nothing: the content of a slot whose reservation was dropped.
    pub const NOTHING: Op = Op(0);
    /// Copies from the peer.
    pub const READ: Op = Op(1);
    /// Copies to the peer.
    pub const WRITE: Op = Op(2);
    /// Copies to the peer, then changes a signal word there.
    pub const WRITE_SIGNAL: Op = Op(3);
    /// Changes a word of the peer atomically.
    pub const ATOMIC: Op = Op(4);
    /// Ends when all older commands to `peer` have ended; for ALL_PEERS, when all older commands
    /// have.
    pub const FLUSH: Op = Op(5);
    /// Sends an active message. In the queue `local` is a boxed `messages::deferred::Deferred`; in
    /// the in-flight table `operand` is the box and `local` the payload.
    pub const MESSAGE: Op = Op(6);
    /// Copies many pieces: `local` is a boxed `engine::pieces::Pieces`.
    pub const PIECES: Op = Op(7);
    /// Asks the peer to unmap this rank's freed regions. An operation of the library's own: no
    /// flush waits for it.
    pub const UNMAP: Op = Op(8);
    /// Reads some of the pieces of a larger read by one message: `operand` is the
    /// `engine::pieces::Pieces`, `local` the first of `compare` entries of its list. Occurs only in
    /// the in-flight table.
    pub const READ_MANY: Op = Op(9);
    /// Like READ_MANY, for a write.
    pub const WRITE_MANY: Op = Op(10);
    /// Asks a peer behind a wire for the address and the network's key of the region that the key
    /// in `remote` names. An operation of the library's own: no flush waits for it.
    pub const IMPORT: Op = Op(11);
    /// Sends a control message to the peer: `local` is a boxed
    /// `engine::control_messages::PostedControl`.
    pub const CONTROL: Op = Op(12);
    /// Copies to the peer, which then gets a control message: `operand` is a boxed
    /// `engine::control_messages::PostedControl`.
    pub const WRITE_CONTROL: Op = Op(13);
}

impl Op {
    /// Whether the library itself has posted the operation; no flush waits for it.
    pub fn is_own(self) -> bool {
        matches!(self, Op::UNMAP | Op::IMPORT)
    }

    /// Whether the owner does something when it has the bytes of a write: changes a signal word, or
    /// takes a control message.
    pub fn is_announced(self) -> bool {
        matches!(self, Op::WRITE_SIGNAL | Op::WRITE_CONTROL)
    }

    /// Whether the command sends a control message.
    pub fn is_control(self) -> bool {
        matches!(self, Op::CONTROL | Op::WRITE_CONTROL)
    }

    /// Whether one message of the command writes or reads several pieces.
    pub fn is_many(self) -> bool {
        matches!(self, Op::READ_MANY | Op::WRITE_MANY)
    }
}

/// `code` of a read or a write that is one piece of a larger operation: `operand` is the
/// `engine::pieces::Pieces` of that operation.
pub const PIECE: u8 = u8::MAX;

/// `peer` of a flush that waits for the operations with all peers.
pub const ALL_PEERS: u32 = u32::MAX;

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The operation.
    pub op: Op,
    /// The atomic operation. Of a write with signal: the one on the signal word. Of a piece: PIECE.
    pub code: u8,
    /// Type of an atomic operation's word.
    pub kind: u8,
    /// The rank of the peer.
    pub peer: u32,
    /// The address in the peer's memory.
    pub remote: Address,
    /// The address in this rank's memory: source, destination, or result of an atomic (may be
    /// null).
    pub local: *mut u8,
    /// Bytes to be copied.
    pub size: u64,
    /// Operand of an atomic, or the signal's value.
    pub operand: u64,
    /// The expected value of a compare-and-swap.
    pub compare: u64,
    /// The address of the word that a signal changes.
    pub signal: Address,
    /// Local completion: fires when the source may be reused.
    pub on_local: Completion,
    /// Fires when the operation has ended.
    pub on_complete: Completion,
}

// SAFETY: a command is data; the user keeps the memory at its addresses valid, for any thread,
// until its completion has fired.
unsafe impl Send for Command {}

impl Command {
    /// Whether a command whose `local` is a pointer carries its bytes. A write does, since its
    /// caller may reuse the source as soon as the call returns. An atomic does not: its `local` is
    /// the place of the result.
    pub fn carries_bytes(&self) -> bool {
        self.op == Op::WRITE
    }

    /// How many bytes of the peer's memory it concerns: of an atomic the width of its word.
    #[inline(always)]
    pub fn reach(&self) -> u64 {
        match self.op {
            Op::ATOMIC => width(self.kind).unwrap_or(8) as u64,
            _ => self.size,
        }
    }

    /// The change of the signal word alone, as an atomic operation with the same completions.
    pub fn signal_alone(&self) -> Command {
        let Command { code, operand, on_local, on_complete, .. } = *self;
        let mut signal = Command::new(Op::ATOMIC, self.peer);
        (signal.remote, signal.kind) = (self.signal, kind::U64);
        (signal.code, signal.operand) = (code, operand);
        (signal.on_local, signal.on_complete) = (on_local, on_complete);
        signal
    }

    /// Fires both completions.
    ///
    /// # Safety
    /// As for Completion::fire(), for both.
    pub unsafe fn fire(&self, status: Status, waiters: &Waiters) {
        // SAFETY: as the caller promises.
        unsafe {
            self.on_local.fire(status, waiters);
            self.on_complete.fire(status, waiters);
        }
    }

    /// A command with an operation and a peer. All other fields are 0, null or nothing.
    pub const fn new(op: Op, peer: u32) -> Command {
        Command {
            op,
            code: 0,
            kind: 0,
            peer,
            remote: Address::NOWHERE,
            local: std::ptr::null_mut(),
            size: 0,
            operand: 0,
            compare: 0,
            signal: Address::NOWHERE,
            on_local: Completion::NOTHING,
            on_complete: Completion::NOTHING,
        }
    }
}
