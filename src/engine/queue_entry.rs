//! The form of a command in a slot of the command queue. The fields that most commands need lie in
//! the slot's first cache line, beside its mark. Only a compare-and-swap, a signal or a local
//! completion uses the second line, so a read, a write or a fetch-add moves one line from the
//! producer to the consumer.

use crate::engine::atomic::op;
use crate::engine::command::{Command, Op};
use crate::engine::command_queue::Entry;
use crate::engine::completion::{Completion, NONE};
use crate::transport::address::Address;
use crate::util::narrow::narrow;
use std::ffi::c_void;

/// Most bytes that a command carries, in the slots behind its own.
pub const INLINE: usize = 480;
/// Bytes of a slot without its mark.
pub const SLOT_BYTES: usize = size_of::<QueueEntry>();

/// The contents of one slot: a command, or bytes that the command before it carries.
///
/// `line` begins with a word that has operation, code, type, extra slots, kinds of both completions
/// and peer. Remote offset, remote key, local address, size (of an atomic: the operand) and the
/// completion's two words follow. `rest` has the signal's value or the expected value of a
/// compare-and-swap, the signal's offset and key, and the local completion's two words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueueEntry {
    line: [u64; 7],
    rest: [u64; 8],
}

const _: () = assert!(SLOT_BYTES == 120 && INLINE.is_multiple_of(SLOT_BYTES));

impl Entry for QueueEntry {
    // Operation 0 is Op::NOTHING.
    const NOTHING: QueueEntry = QueueEntry { line: [0; 7], rest: [0; 8] };
}

/// Whether a command needs the second line.
fn is_wide(command: &Command) -> bool {
    command.on_local.kind != NONE
        || command.op.is_announced()
        || (command.op == Op::ATOMIC && command.code == op::COMPARE_SWAP)
}

impl QueueEntry {
    /// Writes a command that carries its bytes in the `extra` slots behind this one.
    #[inline]
    pub fn put(&mut self, command: &Command, extra: usize) {
        let Command { on_local, on_complete, remote, .. } = command;
        let numbers = u64::from(command.op.0)
            | u64::from(command.code) << 8
            | u64::from(command.kind) << 16
            | (extra as u64) << 20
            | u64::from(on_complete.kind) << 24
            | u64::from(on_local.kind) << 28
            | u64::from(command.peer) << 32;
        let amount = if command.op == Op::ATOMIC { &command.operand } else { &command.size };
        self.line = [
            numbers,
            narrow(&remote.offset),
            narrow(&remote.key),
            narrow(&command.local) as u64,
            narrow(amount),
            narrow(&on_complete.call) as u64,
            narrow(&on_complete.target) as u64,
        ];
        if is_wide(command) {
            let second = if command.op == Op::ATOMIC { command.compare } else { command.operand };
            self.rest[..5].copy_from_slice(&[
                second,
                command.signal.offset,
                command.signal.key,
                on_local.call as u64,
                on_local.target as u64,
            ]);
        }
    }

    /// The command in this slot, and the number of slots behind it that carry its bytes.
    #[inline]
    pub fn take(&self) -> (Command, usize) {
        let [numbers, offset, key, local, amount, call, target] = self.line;
        let mut command = Command::new(Op(numbers as u8), (numbers >> 32) as u32);
        command.code = (numbers >> 8) as u8;
        command.kind = (numbers >> 16) as u8 & 15;
        command.remote = Address { offset, key };
        command.local = local as *mut u8;
        match command.op {
            Op::ATOMIC => command.operand = amount,
            _ => command.size = amount,
        }
        command.on_complete = completion((numbers >> 24) as u32 & 15, call, target);
        command.on_local.kind = (numbers >> 28) as u32 & 15;
        if is_wide(&command) {
            let [second, offset, key, call, target, ..] = self.rest;
            match command.op {
                Op::ATOMIC => command.compare = second,
                _ => command.operand = second,
            }
            command.signal = Address { offset, key };
            command.on_local = completion(command.on_local.kind, call, target);
        }
        (command, (numbers >> 20) as usize & 15)
    }

    /// Writes carried bytes, at most SLOT_BYTES.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        let mut all = [0; SLOT_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        let mut words =
            all.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        for word in self.line.iter_mut().chain(&mut self.rest) {
            *word = words.next().unwrap_or_default();
        }
    }

    /// Copies as many of the carried bytes as `bytes` has room for.
    pub fn take_bytes(&self, bytes: &mut [u8]) {
        for (place, word) in bytes.chunks_mut(8).zip(self.line.iter().chain(&self.rest)) {
            place.copy_from_slice(&word.to_ne_bytes()[..place.len()]);
        }
    }
}

fn completion(kind: u32, call: u64, target: u64) -> Completion {
    Completion { kind, reserved: 0, call: call as *const c_void, target: target as *mut c_void }
}

/// The number of slots that carry `size` bytes.
pub fn slots_for(size: usize) -> usize {
    size.div_ceil(SLOT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::completion::{ADD, CALL, STORE};

    fn through_the_queue(command: &Command, extra: usize) -> (Command, usize) {
        // The slot holds an entry of an earlier round, of which nothing may remain.
        let mut slot = QueueEntry { line: [u64::MAX; 7], rest: [u64::MAX; 8] };
        slot.put(command, extra);
        slot.take()
    }

    #[test]
    fn a_command_comes_out_as_it_went_in() {
        for (op, code, local) in [
            (Op::READ, 0, NONE),
            (Op::WRITE, 0, NONE),
            (Op::WRITE, 0, CALL),
            (Op::WRITE_SIGNAL, op::ADD, NONE),
            (Op::WRITE_SIGNAL, op::STORE, STORE),
            (Op::ATOMIC, op::ADD, NONE),
            (Op::ATOMIC, op::COMPARE_SWAP, NONE),
            (Op::FLUSH, 0, NONE),
        ] {
            let mut command = Command::new(op, 0x00ab_cdef);
            command.code = code;
            command.remote = Address { offset: 11, key: 12 };
            command.local = 13 as *mut u8;
            command.on_complete = completion(ADD, 0, 16);
            if local != NONE {
                command.on_local = completion(local, 24, 32);
            }
            match op {
                Op::ATOMIC => (command.operand, command.kind) = (14, 6),
                _ => command.size = 15,
            }
            if code == op::COMPARE_SWAP {
                command.compare = 17;
            }
            if op == Op::WRITE_SIGNAL {
                command.operand = 18;
                command.signal = Address { offset: 19, key: 20 };
            }
            let (seen, extra) = through_the_queue(&command, 4);
            assert_eq!(extra, 4);
            assert_eq!(format!("{seen:?}"), format!("{command:?}"));
        }
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        for size in [0, 1, 7, 8, 119, 120] {
            let bytes: Vec<u8> = (0..size).map(|i| i as u8 ^ 0xa5).collect();
            let (mut slot, mut seen) = (QueueEntry::NOTHING, vec![0; size]);
            slot.put_bytes(&bytes);
            slot.take_bytes(&mut seen);
            assert_eq!(seen, bytes);
        }
        assert_eq!((slots_for(1), slots_for(120), slots_for(INLINE)), (1, 1, 4));
    }
}
