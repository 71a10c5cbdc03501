//! An operation as data: one type from the caller to the transports. `engine::queue_entry` is its
//! form in the queue.

use crate::engine::atomic::kind;
use crate::engine::completion::Completion;
use crate::transport::address::Address;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Op(pub u8);

impl Op {
    /// Nothing: a place in the queue that was given back.
    pub const NOTHING: Op = Op(0);
    /// Copies from the peer.
    pub const READ: Op = Op(1);
    /// Copies to the peer.
    pub const WRITE: Op = Op(2);
    /// Copies to the peer, then changes a signal word there.
    pub const WRITE_SIGNAL: Op = Op(3);
    /// Changes a word of the peer atomically.
    pub const ATOMIC: Op = Op(4);
    /// Ends when everything before it has ended.
    pub const FLUSH: Op = Op(5);
    /// Sends an active message: `local` is a `messages::deferred::Deferred` in a box of its own. In
    /// the table of operations in flight `operand` is its address.
    pub const MESSAGE: Op = Op(6);
    /// Copies many pieces: `local` is an `engine::pieces::Pieces` in a box of its own.
    pub const PIECES: Op = Op(7);
    /// Asks the peer to let go of this rank's regions that have ended. It is the library's own: no
    /// flush waits for it.
    pub const LET_GO: Op = Op(8);
    /// Some pieces of a larger read, by one message: `local` is the first of `compare` entries of
    /// the list in the `engine::pieces::Pieces` that `operand` names. Only in the table of
    /// operations in flight.
    pub const READ_MANY: Op = Op(9);
    /// As READ_MANY, of a write.
    pub const WRITE_MANY: Op = Op(10);
    /// Asks a peer behind a wire what the key in `remote` leads to. The library's own, likewise.
    pub const IMPORT: Op = Op(11);
    /// Tells the same layer at the peer something: `local` is an `engine::notices::PostedNotice` in
    /// a box of its own.
    pub const NOTICE: Op = Op(12);
}

impl Op {
    /// Whether it is the library's own, which no flush waits for.
    pub fn is_own(self) -> bool {
        matches!(self, Op::LET_GO | Op::IMPORT)
    }

    /// Whether a message of such a command brings or asks for many pieces.
    pub fn is_many(self) -> bool {
        matches!(self, Op::READ_MANY | Op::WRITE_MANY)
    }
}

/// `code` of a read or a write that is a piece of a larger operation: `operand` is its
/// `engine::pieces::Pieces`.
pub const PIECE: u8 = u8::MAX;

/// `peer` of a flush that means all of them.
pub const ALL_PEERS: u32 = u32::MAX;

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Atomic operation, or what a signal does, or PIECE.
    pub code: u8,
    /// Type of an atomic operation's word.
    pub kind: u8,
    /// With whom.
    pub peer: u32,
    /// The peer's side.
    pub remote: Address,
    /// Our side: source, destination, or place of an atomic's result (may be null).
    pub local: *mut u8,
    /// Bytes to be copied.
    pub size: u64,
    /// First number of an atomic, or the signal's value.
    pub operand: u64,
    /// What a compare-and-swap compares with.
    pub compare: u64,
    /// The word that a signal changes.
    pub signal: Address,
    /// Fires when the source may be reused.
    pub on_local: Completion,
    /// Fires when all is done.
    pub on_complete: Completion,
}

// SAFETY: a command is data; the addresses in it stay valid, wherever it is executed, until its
// completion has fired, as the user has promised.
unsafe impl Send for Command {}

const NOWHERE: Address = Address { offset: 0, key: 0 };

impl Command {
    /// Whether the command was made to carry its bytes: of all that name memory of the caller by
    /// its address, an atomic keeps it and a write does not.
    pub fn carries_bytes(&self) -> bool {
        self.op == Op::WRITE
    }

    /// The change of a signal word alone, as an atomic operation; the completions stay.
    pub fn signal_alone(&self) -> Command {
        let Command { code, operand, on_local, on_complete, .. } = *self;
        let mut signal = Command::new(Op::ATOMIC, self.peer);
        (signal.remote, signal.kind) = (self.signal, kind::U64);
        (signal.code, signal.operand) = (code, operand);
        (signal.on_local, signal.on_complete) = (on_local, on_complete);
        signal
    }

    /// A command with nothing in it but its operation and peer.
    pub const fn new(op: Op, peer: u32) -> Command {
        Command {
            op,
            code: 0,
            kind: 0,
            peer,
            remote: NOWHERE,
            local: std::ptr::null_mut(),
            size: 0,
            operand: 0,
            compare: 0,
            signal: NOWHERE,
            on_local: Completion::NOTHING,
            on_complete: Completion::NOTHING,
        }
    }
}
