//! An operation as data: one type from the queue to the transports.

use crate::engine::completion::Completion;
use crate::engine::ring::Entry;
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
}

/// `peer` of a flush that means all of them.
pub const ALL_PEERS: u32 = u32::MAX;

/// Most bytes that a command carries itself, in the slots behind it.
pub const INLINE: usize = 480;

/// One operation. All of it is plain integers and addresses, so that the slots behind a command
/// can carry bytes instead; 120 bytes, which with the slot's mark fill two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Command {
    /// What to do.
    pub op: Op,
    /// Atomic operation, or what a signal does.
    pub code: u8,
    /// Type of an atomic operation's word.
    pub kind: u8,
    /// Slots behind this one that carry the source bytes.
    pub extra: u8,
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

const _: () = assert!(size_of::<Command>() == 120);

// SAFETY: a command is data; the addresses in it stay valid, wherever it is executed, until its
// completion has fired, as the user has promised.
unsafe impl Send for Command {}

const NOWHERE: Address = Address { offset: 0, key: 0 };

impl Command {
    /// A command with nothing in it but its operation and peer.
    pub const fn new(op: Op, peer: u32) -> Command {
        Command {
            op,
            code: 0,
            kind: 0,
            extra: 0,
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

impl Entry for Command {
    const NOTHING: Command = Command::new(Op::NOTHING, 0);
}

/// A slot's worth of bytes that a command carries behind itself.
pub const SLOT_BYTES: usize = size_of::<Command>();

const _: () = assert!(INLINE.is_multiple_of(SLOT_BYTES));

/// How many slots `size` bytes take.
pub fn slots_for(size: usize) -> usize {
    size.div_ceil(SLOT_BYTES)
}

/// Bytes in the shape of a command.
pub fn pack(bytes: &[u8]) -> Command {
    debug_assert!(bytes.len() <= SLOT_BYTES);
    let mut slot = Command::NOTHING;
    // SAFETY: a command is made of integers and raw addresses without padding, for which all bytes
    // are valid, and it has SLOT_BYTES of them.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut slot).cast::<u8>(), bytes.len());
    }
    slot
}

/// The bytes of a slot that pack() made.
pub fn unpack(slot: &Command) -> &[u8] {
    // SAFETY: as in pack().
    unsafe { std::slice::from_raw_parts((&raw const *slot).cast::<u8>(), SLOT_BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_shape_of_a_command() {
        for size in [0, 1, 119, 120] {
            let bytes: Vec<u8> = (0..size).map(|i| i as u8 ^ 0xa5).collect();
            assert_eq!(&unpack(&pack(&bytes))[..size], &bytes[..]);
        }
        assert_eq!((slots_for(1), slots_for(120), slots_for(INLINE)), (1, 1, 4));
    }
}
