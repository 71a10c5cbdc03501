//! What the holder of the lane's role works on: the executor's and the completer's state.

use crate::engine::command::{ALL_PEERS, Command, Op};
use crate::engine::completion::Completion;
use crate::engine::fallback::{InFlight, Stage};
use crate::engine::queued::Queued;
use crate::engine::ring::Consumer;
use crate::engine::routes::Routes;
use crate::engine::slots::{Slots, Tag};
use crate::transport::shm::control::CHUNKS;
use crate::transport::{Posted, Receiver, Reply};
use crate::util::status::Status;

/// Belongs to the holder of the role alone.
pub struct Work {
    pub(super) consumer: Consumer<Queued>,
    /// Sources may be armed.
    pub(super) armed: bool,
    pub(super) receivers: Vec<Box<dyn Receiver>>,
    pub(super) slots: Slots<InFlight>,
    /// Bit i: staging chunk i is free.
    chunks: u32,
    /// Commands in the table whose message has not been sent.
    pub(super) unsent: usize,
    /// Flushes in the table.
    flushes: usize,
    order: u64,
    /// Answers of one round; kept for its memory.
    pub(super) replies: Vec<Reply>,
}

impl Work {
    pub(super) fn new(
        consumer: Consumer<Queued>,
        receivers: Vec<Box<dyn Receiver>>,
        in_flight: usize,
    ) -> Work {
        Work {
            consumer,
            armed: false,
            receivers,
            slots: Slots::new(in_flight),
            chunks: (1 << CHUNKS) - 1,
            unsent: 0,
            flushes: 0,
            order: 0,
            replies: Vec::new(),
        }
    }

    /// Whether a command that needs an agent could be taken in now.
    pub fn has_room(&self, command: &Command, stage: Stage) -> bool {
        !self.slots.is_full()
            && (stage == Stage::Word || command.op == Op::FLUSH || self.chunks != 0)
    }

    /// Takes in a command for which there is room, and asks its agent.
    pub fn start(&mut self, routes: &Routes, command: Command, stage: Stage) {
        self.order += 1;
        let chunk = match stage {
            Stage::Data { .. } if command.op != Op::FLUSH => self.take_chunk(),
            _ => None,
        };
        let flush = command.op == Op::FLUSH;
        let operation = InFlight { command, stage, chunk, sent: flush, order: self.order };
        operation.stage_bytes(chunk.and_then(|chunk| routes.own_staging(chunk.into())));
        let Some(tag) = self.slots.insert(operation) else { return };
        if flush {
            self.flushes += 1;
            self.end_flushes(routes);
        } else {
            self.unsent += 1;
            self.send(routes, tag);
        }
    }

    fn take_chunk(&mut self) -> Option<u8> {
        let chunk = self.chunks.trailing_zeros();
        self.chunks &= self.chunks.wrapping_sub(1);
        Some(chunk as u8)
    }

    /// Asks the agent of an operation whose message has not been sent.
    pub(super) fn send(&mut self, routes: &Routes, tag: Tag) {
        let Some(operation) = self.slots.get_mut(tag) else { return };
        let peer = operation.command.peer;
        let port = match routes.port(peer) {
            Ok(port) if !routes.is_dead(peer) => port,
            _ => return self.end(routes, tag, Status::ERR_PEER_DEAD),
        };
        let message = operation.message(routes.own().peer, tag.0);
        if routes.transport(port).post(port, &message) == Posted::Taken {
            operation.sent = true;
            self.unsent -= 1;
        }
    }

    /// Ends an operation: gives back what it held and tells the user.
    pub(super) fn end(&mut self, routes: &Routes, tag: Tag, status: Status) {
        let Some(operation) = self.slots.remove(tag) else { return };
        if let Some(chunk) = operation.chunk {
            self.chunks |= 1 << chunk;
        }
        match operation.command.op {
            Op::FLUSH => self.flushes -= 1,
            _ if !operation.sent => self.unsent -= 1,
            _ => {}
        }
        fire(routes, &operation.command, status);
        if operation.command.op != Op::FLUSH {
            self.end_flushes(routes);
        }
    }

    /// Ends the flushes before which nothing is under way any more.
    fn end_flushes(&mut self, routes: &Routes) {
        if self.flushes == 0 {
            return;
        }
        let flushes: Vec<(Tag, u32, u64)> = self
            .slots
            .iter()
            .filter(|(_, operation)| operation.command.op == Op::FLUSH)
            .map(|(tag, operation)| (tag, operation.command.peer, operation.order))
            .collect();
        for (tag, peer, order) in flushes {
            let busy = self.slots.iter().any(|(_, operation)| {
                operation.command.op != Op::FLUSH
                    && operation.order < order
                    && (peer == ALL_PEERS || peer == operation.command.peer)
            });
            if !busy {
                self.end(routes, tag, Status::OK);
            }
        }
    }

    /// Ends everything that fits; returns how many there were.
    pub(super) fn end_if(
        &mut self,
        routes: &Routes,
        status: Status,
        fits: impl Fn(&InFlight) -> bool,
    ) -> usize {
        let tags: Vec<Tag> = self
            .slots
            .iter()
            .filter(|(_, operation)| fits(operation))
            .map(|(tag, _)| tag)
            .collect();
        for tag in &tags {
            self.end(routes, *tag, status);
        }
        tags.len()
    }
}

/// Tells the user that a command has ended.
pub fn fire(routes: &Routes, command: &Command, status: Status) {
    let Command { on_local, on_complete, .. } = command;
    for completion in [on_local, on_complete] {
        Completion::fire(completion, status, routes.waiters());
    }
}
