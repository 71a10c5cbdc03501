//! Memory of ranks as the simulated network sees it: what each rank has registered, and what one
//! command does there. The network is the adapter: no thread of the memory's owner takes part.

use crate::transport::wire::{Command, Key};
use crate::util::status::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one rank has registered, by the number in `wire[0]`.
#[derive(Default)]
pub struct Registered {
    spans: HashMap<u64, (u64, u64)>,
    last: u64,
    /// The rank is gone: nobody answers for its memory.
    pub over: bool,
}

/// What a command does at the peer, without the pieces of its poster.
#[derive(Clone, Copy)]
pub struct Access {
    op: u8,
    atomic: u8,
    remote: u64,
    number: u64,
    operand: u64,
    compare: u64,
}

impl Access {
    /// That of a command.
    pub fn of(command: &Command) -> Access {
        let Command { op, atomic, remote, operand, compare, .. } = *command;
        Access { op, atomic, remote, number: command.wire[0], operand, compare }
    }

    /// Whether it changes what lies at the peer.
    pub fn is_write(&self) -> bool {
        self.op == Command::WRITE
    }
}

/// Moves bytes as an adapter does: an aligned word in one piece.
///
/// # Safety
/// Both are valid for `size` bytes and do not overlap, but for being the same.
unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: as the caller promises; words that threads share are used atomically by them.
    unsafe {
        if size == 8 && (from as usize | to as usize).is_multiple_of(8) {
            let word = AtomicU64::from_ptr(from.cast_mut().cast()).load(Ordering::Acquire);
            AtomicU64::from_ptr(to.cast()).store(word, Ordering::Release);
        } else {
            std::ptr::copy(from, to, size);
        }
    }
}

impl Registered {
    /// A span of this process's memory; its key.
    pub fn add(&mut self, start: u64, size: u64) -> Key {
        self.last += 1;
        self.spans.insert(self.last, (start, size));
        Key { local: self.last, wire: [self.last, 0, 0, 0] }
    }

    /// Nothing reaches it any more: accesses are executed under the lock that the caller holds.
    pub fn remove(&mut self, key: &Key) {
        self.spans.remove(&key.wire[0]);
    }

    /// Whether a key covers bytes.
    pub fn covers(&self, number: u64, start: u64, size: u64) -> bool {
        self.spans.get(&number).is_some_and(|(first, length)| {
            start >= *first && start - first <= *length && size <= length - (start - first)
        })
    }

    /// Executes an access of `size` bytes, at `local` on the other side: how it went, and what an
    /// atomic fetched.
    ///
    /// # Safety
    /// `local` is valid for `size` bytes, for writing where the access is a read; what is
    /// registered here is valid until remove().
    pub unsafe fn execute(&self, access: &Access, local: *mut u8, size: u64) -> (Status, u64) {
        if !self.covers(access.number, access.remote, size) {
            return (Status::ERR_KEY, 0);
        }
        let there = access.remote as *mut u8;
        // SAFETY: covered, hence valid; `local` as the caller promises. Atomics are of words.
        unsafe {
            match access.op {
                Command::READ => copy(there, local, size as usize),
                Command::WRITE => copy(local, there, size as usize),
                _ if size != 8 || !access.remote.is_multiple_of(8) => {
                    return (Status::ERR_INVALID, 0);
                }
                _ => return (Status::OK, change(AtomicU64::from_ptr(there.cast()), access)),
            }
        }
        (Status::OK, 0)
    }
}

/// Changes a word as an adapter does whose atomics and those of processors do not see each other:
/// what comes between load and store is lost. The caller's lock keeps accesses by the network
/// apart.
fn change(word: &AtomicU64, access: &Access) -> u64 {
    let old = word.load(Ordering::Acquire);
    std::thread::yield_now();
    let new = match access.atomic {
        3 => access.operand,
        5 => old.wrapping_add(access.operand),
        _ if old == access.compare => access.operand,
        _ => return old,
    };
    word.store(new, Ordering::Release);
    old
}
