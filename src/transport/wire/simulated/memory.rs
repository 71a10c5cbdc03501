//! The registered memory of ranks on the simulated network, and the execution of one command there.
//! The thread that polls the poster's lane acts as the owner's adapter: no thread of the owner
//! takes part.

use crate::transport::wire::{Command, Key, NOTICE_WORDS};
use crate::util::status::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The registrations of one rank; `wire[0]` of a key is the number of a registration.
#[derive(Default)]
pub struct Registered {
    /// By number: address and size.
    spans: HashMap<u64, (u64, u64)>,
    last: u64,
    /// The rank has closed its lane: no access is executed any more.
    pub over: bool,
}

/// A notice: its number and, where it brings them, its words.
pub type Notice = (u32, Option<[u64; NOTICE_WORDS]>);

/// The remote side of a command.
#[derive(Clone, Copy)]
pub struct Access {
    op: u8,
    atomic: u8,
    remote: u64,
    number: u64,
    operand: u64,
    compare: u64,
    /// What its peer is told behind it.
    pub notice: Option<Notice>,
}

impl Access {
    /// The remote side of this command.
    pub fn of(command: &Command) -> Access {
        let Command { op, atomic, remote, operand, compare, flags, .. } = *command;
        let words = (flags & Command::WORDS != 0).then_some(command.words);
        let notice = (flags & Command::NOTICE != 0).then_some((command.notice, words));
        Access { op, atomic, remote, number: command.wire[0], operand, compare, notice }
    }

    /// Whether it is a plain write.
    pub fn is_write(&self) -> bool {
        self.op == Command::WRITE
    }
}

/// Copies as an adapter does: an aligned word of 8 bytes atomically.
///
/// # Safety
/// Both are valid for `size` bytes.
unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller vouches for both ranges; threads use shared words atomically.
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
    /// Registers memory of this process.
    pub fn add(&mut self, start: u64, size: u64) -> Key {
        self.last += 1;
        self.spans.insert(self.last, (start, size));
        Key { local: self.last, wire: [self.last, 0, 0, 0] }
    }

    /// Ends a registration. The caller holds the lock under which accesses are executed, so none
    /// reaches the memory any more.
    pub fn remove(&mut self, key: &Key) {
        self.spans.remove(&key.wire[0]);
    }

    /// Whether the registration with this number covers all these bytes.
    pub fn covers(&self, number: u64, start: u64, size: u64) -> bool {
        self.spans.get(&number).is_some_and(|(first, length)| {
            start >= *first && start - first <= *length && size <= length - (start - first)
        })
    }

    /// Executes an access of `size` bytes with the poster's buffer `local`. Returns the status, and
    /// the value that an atomic has fetched.
    ///
    /// # Safety
    /// `local` is valid for `size` bytes, for writing where the access is a read; what is
    /// registered here is valid until remove().
    pub unsafe fn execute(&self, access: &Access, local: *mut u8, size: u64) -> (Status, u64) {
        if !self.covers(access.number, access.remote, size) {
            return (Status::ERR_KEY, 0);
        }
        let there = access.remote as *mut u8;
        // SAFETY: registered memory is valid; the caller vouches for `local`; an atomic's word is
        // aligned.
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

/// Executes an atomic as an adapter does that is not coherent with the processor's atomics: a
/// processor's change between the load and the store is lost, so tests notice when the library
/// mixes the two. The caller's lock excludes other accesses by the network.
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
