//! Reads, writes and atomics on memory that only its owner can touch, built from messages. Here
//! and nowhere else. The asker stages the bytes in its own control area, in fragments of a chunk;
//! the owner's agent copies between there and the region.

use crate::engine::atomic;
use crate::engine::by_caller::{self, Word, copy};
use crate::engine::command::{Command, Op};
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::transport::port::Port;
use crate::transport::{CHUNK, MESSAGE_WORDS, Message, Reply};
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};

/// Message kinds; words: key, offset, size, staging chunk.
const READ: u32 = 1;
const WRITE: u32 = 2;
/// Words: key, offset, operation and type, operand, compare.
const ATOMIC: u32 = 3;
/// No words: the peer, which is to answer when it has let go of the asker's ended regions.
const LET_GO: u32 = 4;

/// Which part of a command is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Bytes are being copied, `done` so far.
    Data { done: u64 },
    /// The signal word, or the word of an atomic, is being changed.
    Word,
}

/// A command whose agent has been or will be asked.
#[derive(Debug)]
pub struct InFlight {
    /// The command.
    pub command: Command,
    /// What is being done.
    pub stage: Stage,
    /// The staging chunk that it uses while it copies.
    pub chunk: Option<u8>,
    /// The message for the present stage lies in a slot of the peer's.
    pub sent: bool,
    /// Counts up with each command, for flushes.
    pub order: u64,
    /// The bytes of a command that carried them. Few commands need that, and only those that an
    /// agent must execute.
    _bytes: Option<Box<[u8]>>,
}

impl InFlight {
    /// A command whose agent has not been asked yet. `carried`: its bytes must be copied now.
    pub fn new(mut command: Command, stage: Stage, order: u64, carried: bool) -> InFlight {
        let mut bytes = None;
        if carried && stage != Stage::Word {
            // SAFETY: the caller has them at hand, `size` bytes.
            let source =
                unsafe { std::slice::from_raw_parts(command.local, command.size as usize) };
            let mut copy: Box<[u8]> = source.into();
            command.local = copy.as_mut_ptr();
            bytes = Some(copy);
        }
        InFlight { command, stage, chunk: None, sent: false, order, _bytes: bytes }
    }

    /// Whether the present stage moves bytes and has no place for them yet.
    pub fn needs_chunk(&self) -> bool {
        self.stage != Stage::Word && self.chunk.is_none()
    }

    fn fragment(&self, done: u64) -> u64 {
        (self.command.size - done).min(CHUNK as u64)
    }

    /// Copies the bytes that the present stage writes to the chunk, whose memory is `staging`. Once
    /// per stage, at its beginning: a source that the command carried itself is gone later.
    pub fn stage_bytes(&self, staging: Option<*mut u8>) {
        if let (Stage::Data { done }, Some(staging)) = (self.stage, staging)
            && self.command.op != Op::READ
        {
            let from = self.command.local.wrapping_add(done as usize);
            // SAFETY: the source is valid until the completion fires; a fragment fits a chunk,
            // which is ours until the command has ended.
            unsafe { copy(from, staging, self.fragment(done) as usize) };
        }
    }

    /// The message that asks for the present stage.
    pub fn message(&self, source: u32, tag: u64) -> Message {
        let command = &self.command;
        let mut words = [0; MESSAGE_WORDS];
        let kind = match self.stage {
            Stage::Word if command.op == Op::LET_GO => LET_GO,
            Stage::Word => {
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
            Stage::Data { done } => {
                let size = self.fragment(done);
                words[0] = command.remote.key;
                words[1] = command.remote.offset + done;
                words[2] = size;
                words[3] = self.chunk.unwrap_or(u8::MAX).into();
                if command.op == Op::READ { READ } else { WRITE }
            }
        };
        Message { kind, source, tag, words }
    }

    /// Takes in the answer to the present stage. Some: the command has ended.
    pub fn answered(&mut self, reply: Reply, staging: Option<*mut u8>) -> Option<Status> {
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
            (Stage::Data { done }, op) => {
                let size = self.fragment(done);
                if let (Op::READ, Some(staging)) = (op, staging) {
                    let to = self.command.local.wrapping_add(done as usize);
                    // SAFETY: the destination is valid until the completion fires; the chunk is
                    // ours.
                    unsafe { copy(staging, to, size as usize) };
                }
                let ended = self.advance(done + size);
                if ended.is_none() {
                    self.stage_bytes(staging);
                }
                ended
            }
        }
    }

    fn advance(&mut self, done: u64) -> Option<Status> {
        self.stage = if done < self.command.size {
            Stage::Data { done }
        } else if self.command.op == Op::WRITE_SIGNAL {
            Stage::Word
        } else {
            return Some(Status::OK);
        };
        self.sent = false;
        None
    }
}

/// What became of a request of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It was done and answered, or nobody waits for its answer.
    Done,
    /// The peer must be contacted before it can be answered: again when a contact has ended.
    Connecting,
    /// Not now, and nothing announces when: the contact has failed, as where no descriptor is left,
    /// or another thread holds what is needed. Again after a while.
    Later,
}

/// Does what a peer asks for, in this rank's own memory, and answers.
pub fn serve(routes: &Routes, message: &Message) -> Served {
    let port = match routes.port_to_answer(message.source) {
        Ok(port) => port,
        Err(error) if error.status == Status::RETRY_CONNECTING => return Served::Connecting,
        // A dead rank, or a number that is no rank, waits for no answer.
        Err(_) if message.source >= routes.size() || routes.is_dead(message.source) => {
            return Served::Done;
        }
        Err(_) => return Served::Later,
    };
    let (status, result) = match execute(routes, port, message) {
        Ok(result) => (Status::OK, result),
        Err(error) if message.kind == LET_GO && error.status.is_retry() => return Served::Later,
        Err(error) => (error.status, 0),
    };
    routes.transport(port).reply(port, Reply { tag: message.tag, status, result });
    Served::Done
}

fn execute(routes: &Routes, asker: &Port, message: &Message) -> Result<u64> {
    if message.kind == LET_GO {
        return asker.let_go().map(|()| 0);
    }
    let address = Address { key: message.words[0], offset: message.words[1] };
    if message.kind == ATOMIC {
        let (op, kind) = (message.words[2] as u8, (message.words[2] >> 8) as u8);
        if !atomic::supported(op, kind) {
            return Err(Error::bare(Status::ERR_UNSUPPORTED));
        }
        let word = Word { address, op, kind };
        let old =
            by_caller::change(routes, routes.own(), word, message.words[3], message.words[4])?;
        return old.ok_or(Error::bare(Status::ERR_INTERNAL));
    }
    let size = message.words[2];
    let chunk = routes.transport(asker).staging(asker, message.words[3] as usize);
    let Some(staging) = chunk.filter(|_| size <= CHUNK as u64) else {
        return Err(Error::bare(Status::ERR_INVALID));
    };
    let _pinned = pin();
    let Some(own) = routes.own().find(address, size) else {
        return Err(Error::bare(Status::ERR_KEY));
    };
    // SAFETY: the region is ours while we are pinned; a chunk has CHUNK bytes.
    unsafe {
        match message.kind {
            READ => copy(own, staging, size as usize),
            WRITE => {
                copy(staging, own, size as usize);
                routes.waiters().touched(address, size);
            }
            _ => return Err(Error::bare(Status::ERR_INVALID)),
        }
    }
    Ok(0)
}
