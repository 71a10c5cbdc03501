//! Reads, writes and atomics on memory that only its owner can touch: the requester sends requests,
//! and the owner's completer serves and answers them. The bytes travel with the requests and the
//! answers, in fragments of at most CHUNK bytes. Both sides of this protocol are in this module.

use crate::engine::atomic;
use crate::engine::by_caller::{self, Word, copy, copy_word};
use crate::engine::command::{Command, Op};
use crate::engine::control_messages::{self, PostedControl};
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::transport::remote::Signal;
use crate::transport::{CHUNK, MESSAGE_WORDS, Message, Reply, SMALL_REPLY, SMALL_REQUEST};
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;

mod many;

/// Message kinds. READ and WRITE have the words key, offset, size; WRITE brings the bytes.
const READ: u32 = 1;
const WRITE: u32 = 2;
/// Words: key, offset, operation and type, operand, compare.
const ATOMIC: u32 = 3;
/// No words. The receiver unmaps the sender's freed regions and then answers.
const UNMAP: u32 = 4;
/// Words: key, number of pieces, bytes of all pieces; see `many`.
const READ_MANY: u32 = 5;
const WRITE_MANY: u32 = 6;
/// Words: key. The answer brings the bytes of `Fabric::describe`.
const IMPORT: u32 = 7;
/// Words: those of a control message, see `engine::control_messages`.
const CONTROL: u32 = 8;
/// Like WRITE; after the bytes the owner changes the signal word. Words: key, offset, the signal's
/// key, offset and value. The size is the number of bytes that the message brings.
const WRITE_SET: u32 = 9;
const WRITE_ADD: u32 = 10;

/// The part of a command that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The owner copies bytes by requests; `done` bytes are copied.
    Data { done: u64 },
    /// The owner changes the signal word or the word of an atomic.
    Word,
    /// A network copies the `size` bytes after the first `done`, or brings an atomic to the owner's
    /// thread that polls; see `engine::by_wire`.
    Posted { done: u64, size: u64 },
    /// A network's adapter changes the word of an atomic, which may hold `guess`; see
    /// `engine::by_device`. The owner's processor never does this.
    Device { guess: u64 },
}

/// An entry of the in-flight table: a command that the owner or a network executes.
#[derive(Debug)]
pub struct InFlight {
    /// The command.
    pub command: Command,
    /// The present stage.
    pub stage: Stage,
    /// The lane has reserved a large slot for the bytes of its answers.
    pub has_place: bool,
    /// The request of the present stage has been sent, or its work request posted.
    pub sent: bool,
    /// The owner's answer to the signal that the network has brought with the last bytes, if it
    /// came before the network's completion; see `engine::by_wire`.
    pub(super) answer: Option<Status>,
    /// The number of the command; an older command has a smaller one. For flushes.
    pub order: u64,
    /// A copy of the bytes that the command carried, or the bytes of a request of many pieces.
    bytes: Option<Box<[u8]>>,
}

impl InFlight {
    /// A command that was not sent yet. `carried`: the command's bytes are valid only during this
    /// call, which copies them.
    ///
    /// # Safety
    /// The promises of Lane::put() hold until the operation has ended, and it ends once. A command
    /// that occurs only in the in-flight table (see [`Op`]) was made by the executor, and no other
    /// command has its message or its pieces.
    pub unsafe fn new(command: Command, stage: Stage, order: u64, carried: bool) -> InFlight {
        // SAFETY: as the caller promises.
        let mut operation = unsafe { InFlight::of(&command, command.local, stage, order) };
        if carried && stage != Stage::Word && command.size > 0 {
            // SAFETY: as the caller promises.
            unsafe { operation.carry() };
        }
        if command.op.is_many() {
            // SAFETY: as the caller promises.
            operation.bytes = Some(unsafe { many::bytes(&command) });
        }
        operation
    }

    /// The operation of new() for a command whose bytes stay valid, with this local address.
    ///
    /// # Safety
    /// As for new().
    #[inline(always)]
    pub unsafe fn of(command: &Command, local: *mut u8, stage: Stage, order: u64) -> InFlight {
        let command = Command { local, ..*command };
        InFlight { command, stage, has_place: false, sent: false, answer: None, order, bytes: None }
    }

    /// Copies the bytes that the command carries.
    ///
    /// # Safety
    /// They are valid during this call.
    pub unsafe fn carry(&mut self) {
        let Command { local, size, .. } = self.command;
        // SAFETY: as the caller promises.
        let mut copy: Box<[u8]> =
            unsafe { std::slice::from_raw_parts(local, size as usize) }.into();
        self.command.local = copy.as_mut_ptr();
        self.bytes = Some(copy);
    }

    /// Takes the copied bytes, for a caller that must keep them longer than the operation.
    pub fn take_copy(&mut self) -> Option<Box<[u8]>> {
        match self.command.op {
            // SAFETY: the promise of new(); the operation has not ended.
            Op::WRITE_CONTROL => Some(unsafe { PostedControl::take_copy(&self.command) }),
            _ => self.bytes.take(),
        }
    }

    /// Whether the request or the answer of the present stage has more bytes than fit into a
    /// message slot, so that it needs one of the few large slots.
    pub fn is_large(&self) -> bool {
        let Stage::Data { done } = self.stage else { return false };
        match self.command.op {
            Op::READ => self.fragment(done) > SMALL_REPLY as u64,
            Op::READ_MANY => self.has_large_answer() || self.bytes().len() > SMALL_REQUEST,
            Op::WRITE_MANY => self.bytes().len() > SMALL_REQUEST,
            _ => self.fragment(done) > SMALL_REQUEST as u64,
        }
    }

    fn has_large_answer(&self) -> bool {
        let Stage::Data { done } = self.stage else { return false };
        let reads = matches!(self.command.op, Op::READ | Op::READ_MANY);
        reads && self.fragment(done) > SMALL_REPLY as u64
    }

    /// Whether the bytes of its next answer need a large slot that is not reserved yet.
    pub fn needs_place(&self) -> bool {
        !self.has_place && self.has_large_answer()
    }

    fn fragment(&self, done: u64) -> u64 {
        (self.command.size - done).min(CHUNK as u64)
    }

    /// The bytes of the request of the present stage.
    pub fn bytes(&self) -> &[u8] {
        match self.stage {
            Stage::Data { .. } if self.command.op.is_many() => {
                self.bytes.as_deref().unwrap_or_default()
            }
            Stage::Data { .. } if self.command.op == Op::CONTROL => {
                // SAFETY: the promise of new(); the operation has not ended.
                unsafe { PostedControl::of(&self.command) }.bytes()
            }
            // A write of no bytes may have no source.
            Stage::Data { done } if self.command.op != Op::READ && self.command.size > done => {
                let from = self.command.local.wrapping_add(done as usize);
                let size = self.fragment(done) as usize;
                // SAFETY: the source is valid until the completion fires, and has `size` bytes from
                // `done` on.
                unsafe { std::slice::from_raw_parts(from, size) }
            }
            _ => &[],
        }
    }

    /// Stores the bytes of an answer to the present stage. False: their number is wrong.
    pub fn take_bytes(&self, bytes: &[u8]) -> bool {
        let Stage::Data { done } = self.stage else { return bytes.is_empty() };
        if self.command.op == Op::READ_MANY {
            // SAFETY: the promise of new(); the operation has not ended.
            return unsafe { many::take_bytes(&self.command, bytes) };
        }
        if self.command.op != Op::READ {
            return bytes.is_empty();
        }
        let fits = bytes.len() as u64 == self.fragment(done);
        if fits {
            let to = self.command.local.wrapping_add(done as usize);
            // SAFETY: the destination is valid until the completion fires.
            unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
        }
        fits
    }

    /// Whether the request with the bytes from `done` on is the last one of a write with signal.
    /// The last request brings the signal, too.
    fn brings_signal(&self, done: u64) -> bool {
        let Command { op, size, .. } = self.command;
        op == Op::WRITE_SIGNAL && done + self.fragment(done) == size
    }

    /// The request of the present stage.
    pub fn message(&self, source: u32, tag: u64) -> Message {
        let command = &self.command;
        let mut words = [0; MESSAGE_WORDS];
        let kind = match self.stage {
            Stage::Word if command.op == Op::UNMAP => UNMAP,
            Stage::Word if command.op == Op::IMPORT => {
                words[0] = command.remote.key;
                IMPORT
            }
            Stage::Word if command.op == Op::WRITE_CONTROL => {
                // SAFETY: the promise of new(); the operation has not ended.
                words = unsafe { PostedControl::of(command) }.words();
                CONTROL
            }
            Stage::Word | Stage::Device { .. } => {
                let (address, kind) = match command.op {
                    Op::ATOMIC => (command.remote, command.kind),
                    _ => (command.signal, atomic::kind::U64),
                };
                words[0] = address.key;
                words[1] = address.offset;
                words[2] = u64::from(command.code) | u64::from(kind) << 8;
                words[3] = command.operand;
                words[4] = command.compare;
                ATOMIC
            }
            Stage::Data { .. } if command.op.is_many() => {
                words[..3].copy_from_slice(&[command.remote.key, command.compare, command.size]);
                if command.op == Op::READ_MANY { READ_MANY } else { WRITE_MANY }
            }
            Stage::Data { .. } if command.op == Op::CONTROL => {
                // SAFETY: the promise of new(); the operation has not ended.
                words = unsafe { PostedControl::of(command) }.words();
                CONTROL
            }
            Stage::Data { done } if self.brings_signal(done) => {
                let Command { remote, signal, operand, .. } = *command;
                words = [remote.key, remote.offset + done, signal.key, signal.offset, operand];
                if command.code == atomic::op::ADD { WRITE_ADD } else { WRITE_SET }
            }
            Stage::Data { done } | Stage::Posted { done, .. } => {
                let size = self.fragment(done);
                words[0] = command.remote.key;
                words[1] = command.remote.offset + done;
                words[2] = size;
                if command.op == Op::READ { READ } else { WRITE }
            }
        };
        Message { kind, source, tag, words }
    }

    /// Handles the answer to the present stage, after take_bytes(), and sets the next stage. Some:
    /// the command has ended.
    pub fn answered(&mut self, reply: Reply) -> Option<Status> {
        if reply.status != Status::OK {
            return Some(reply.status);
        }
        match (self.stage, self.command.op) {
            (Stage::Word, Op::ATOMIC) => {
                let command = &self.command;
                // SAFETY: the user vouches for the result's place until the completion fires.
                unsafe { atomic::deliver(command.local, command.kind, reply.result) };
                Some(Status::OK)
            }
            (Stage::Word, _) => Some(Status::OK),
            (Stage::Data { done }, _) => self.advance(done + self.fragment(done)),
            // Only the network can end a posted stage.
            (Stage::Posted { .. } | Stage::Device { .. }, _) => None,
        }
    }

    fn advance(&mut self, done: u64) -> Option<Status> {
        self.stage = match done < self.command.size {
            true => Stage::Data { done },
            // The bytes are there, and the control message follows.
            false if self.command.op == Op::WRITE_CONTROL => Stage::Word,
            false => return Some(Status::OK),
        };
        self.sent = false;
        None
    }
}

/// The result of serving a request.
pub enum Served {
    /// The request was done and answered, or its sender is dead.
    Done,
    /// The owner must contact the sender before it can answer. It serves the request again when a
    /// contact has ended.
    Connecting,
    /// The contact has failed (for instance because no descriptor is left), or another thread holds
    /// a lock that is needed. No contact announces when this changes, so the owner serves the
    /// request again in each round.
    Later,
    /// The request was done, but its answer has found no free slot. The owner sends the answer
    /// again in each round.
    Unanswered(Reply, Box<[u8]>),
}

/// Sends the answer to a peer's request again, unless the peer is dead. False: it has found no free
/// slot again.
pub fn answer_again(routes: &Routes, peer: u32, reply: Reply, bytes: &[u8]) -> bool {
    let sent = |port| routes.transport(port).reply(port, reply, bytes);
    routes.is_dead(peer) || routes.port_to_answer(peer).is_ok_and(sent)
}

/// Serves a request: does a peer's operation in this rank's memory, and answers. `bytes`: those
/// that the request brings.
pub fn serve(routes: &Routes, message: &Message, bytes: &[u8]) -> Served {
    let port = match routes.port_to_answer(message.source) {
        Ok(port) => port,
        Err(error) if error.status == Status::RETRY_CONNECTING => return Served::Connecting,
        // No answer to a dead rank, or to a number that is no rank.
        Err(_) if message.source >= routes.size() || routes.is_dead(message.source) => {
            return Served::Done;
        }
        Err(_) => return Served::Later,
    };
    let answer = |status, result, bytes: &[u8]| {
        let reply = Reply { tag: message.tag, status, result };
        match routes.transport(port).reply(port, reply, bytes) {
            true => Served::Done,
            false => Served::Unanswered(reply, bytes.into()),
        }
    };
    let done = match message.kind {
        UNMAP => port.cut_off_freed().map(|()| answer(Status::OK, 0, &[])),
        ATOMIC => change_word(routes, message).map(|old| answer(Status::OK, old, &[])),
        READ => read(routes, message, |bytes| answer(Status::OK, 0, bytes)),
        WRITE => write(routes, message, bytes).map(|()| answer(Status::OK, 0, &[])),
        WRITE_SET | WRITE_ADD => {
            write_and_signal(routes, message, bytes).map(|()| answer(Status::OK, 0, &[]))
        }
        READ_MANY => many::read(routes, message, bytes, |bytes| answer(Status::OK, 0, bytes)),
        WRITE_MANY => many::write(routes, message, bytes).map(|()| answer(Status::OK, 0, &[])),
        CONTROL => {
            let is_dead = || routes.is_dead(message.source);
            let taken = routes.control_messages().take(message, bytes, is_dead);
            taken.map(|()| answer(Status::OK, 0, &[]))
        }
        IMPORT => {
            let described = routes.fabric().describe(message.words[0], message.source);
            described.map(|bytes| answer(Status::OK, 0, &bytes))
        }
        _ => Err(Error::bare(Status::ERR_INVALID)),
    };
    match done {
        Ok(served) => served,
        Err(error) if message.kind == UNMAP && error.status.is_retry() => Served::Later,
        Err(error) => answer(error.status, 0, &[]),
    }
}

/// The address in the words of a message.
fn place(message: &Message) -> Address {
    Address { key: message.words[0], offset: message.words[1] }
}

fn change_word(routes: &Routes, message: &Message) -> Result<u64> {
    let (op, kind) = (message.words[2] as u8, (message.words[2] >> 8) as u8);
    let word = Word { address: place(message), op, kind };
    change_own(routes, word, message.words[3], message.words[4])
}

/// Changes a word of this rank as a peer asks, and returns its old value.
fn change_own(routes: &Routes, word: Word, operand: u64, compare: u64) -> Result<u64> {
    if !atomic::supported(word.op, word.kind) {
        return Err(Error::bare(Status::ERR_UNSUPPORTED));
    }
    let old = by_caller::change(routes, routes.own(), word, operand, compare)?;
    old.ok_or(Error::bare(Status::ERR_INTERNAL))
}

/// Calls `answer` with the bytes that the request reads, and returns what it returns.
fn read<T>(routes: &Routes, message: &Message, answer: impl FnOnce(&[u8]) -> T) -> Result<T> {
    let size = message.words[2];
    if size > CHUNK as u64 {
        return Err(Error::bare(Status::ERR_INVALID));
    }
    let _pinned = pin();
    let Some(own) = routes.own().find(place(message), size) else {
        return Err(Error::bare(Status::ERR_KEY));
    };
    if size == 8 && (own as usize).is_multiple_of(8) {
        let mut word = [0_u64];
        // SAFETY: the region is ours while we are pinned; both are aligned and of 8 bytes.
        unsafe { copy_word(own, word.as_mut_ptr().cast()) };
        return Ok(answer(&word[0].to_ne_bytes()));
    }
    // SAFETY: the region has `size` bytes there and is ours while we are pinned.
    Ok(answer(unsafe { std::slice::from_raw_parts(own, size as usize) }))
}

fn write(routes: &Routes, message: &Message, bytes: &[u8]) -> Result<()> {
    if message.words[2] != bytes.len() as u64 {
        return Err(Error::bare(Status::ERR_INVALID));
    }
    store(routes, place(message), bytes)
}

/// Stores the bytes, then changes the signal word by a release operation: a thread that sees the
/// signal sees the bytes.
fn write_and_signal(routes: &Routes, message: &Message, bytes: &[u8]) -> Result<()> {
    store(routes, place(message), bytes)?;
    let [_, _, key, offset, value] = message.words;
    let op = if message.kind == WRITE_ADD { atomic::op::ADD } else { atomic::op::STORE };
    let word = Word { address: Address { offset, key }, op, kind: atomic::kind::U64 };
    change_own(routes, word, value, 0).map(drop)
}

/// Sets the function that changes a signal word of this rank or the word of an atomic, or takes a
/// control message, when a network has brought the bytes of the write. The thread that polls the
/// wire calls it.
pub fn serve_signals(routes: &Arc<Routes>) {
    let retired = Arc::downgrade(routes);
    routes.fabric().on_signal(Box::new(move |source, signalled| {
        let Some(routes) = retired.upgrade() else { return (Status::ERR_KEY, 0) };
        let end = match signalled.op {
            control_messages::NOTICE if !signalled.is_atomic() => {
                let message = control_messages::from_notice(source, signalled);
                routes.control_messages().take(&message, &[], || true).map(|()| 0)
            }
            _ => signal(&routes, signalled),
        };
        end.map_or_else(|error| (error.status, 0), |old| (Status::OK, old))
    }));
}

fn signal(routes: &Routes, signal: &Signal) -> Result<u64> {
    let Signal { op, kind, word: address, value, compare } = *signal;
    let kind = if signal.is_atomic() { kind } else { atomic::kind::U64 };
    change_own(routes, Word { address, op, kind }, value, compare)
}

fn store(routes: &Routes, address: Address, bytes: &[u8]) -> Result<()> {
    let size = bytes.len() as u64;
    let _pinned = pin();
    let Some(own) = routes.own().find(address, size) else {
        return Err(Error::bare(Status::ERR_KEY));
    };
    // SAFETY: the region is ours while we are pinned.
    unsafe { copy(bytes.as_ptr(), own, bytes.len()) };
    routes.waiters().touched(address, size);
    Ok(())
}
