//! Operations that a network executes in the memory of a peer: gathered for each peer, and posted
//! in batches under one doorbell by the holder of the lane's role. They stand in the table of
//! operations in flight, as those that an owner is asked for, in a stage of their own
//! ([`Stage::Posted`]), and their ends come back by tag.
//!
//! What the network turns out not to be able to do, as where this rank's side is not registered,
//! goes on as a request to the owner. What a network has taken ends with what the network tells,
//! also where the peer has died: until then it may use this rank's memory.

use crate::engine::atomic;
use crate::engine::by_device;
use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::Op;
use crate::engine::in_flight::Tag;
use crate::engine::lane_state::LaneState;
use crate::engine::routes::Routes;
use crate::transport::Reply;
use crate::transport::fabric::far::Resolver;
use crate::transport::remote::{Posting, Stopped, What};
use crate::util::status::Status;
use std::collections::VecDeque;

/// Most operations that are posted at a time.
const BATCH: usize = 64;

impl InFlight {
    /// Whether a network has it, or is to have it.
    pub fn is_posted(&self) -> bool {
        matches!(self.stage, Stage::Posted { .. } | Stage::Device { .. })
    }

    /// The first stage of an operation on memory that a network reaches.
    pub fn first_posted(size: u64, most: u64) -> Stage {
        Stage::Posted { done: 0, size: size.min(most) }
    }

    /// What is to be posted for the present stage. None: the network does not know the peer's side
    /// any more.
    fn posting(&self, resolver: &Resolver, atomics: u64, tag: Tag) -> Option<Posting> {
        let command = &self.command;
        let (remote, key) = resolver.resolve(command.remote)?;
        let (what, done, size) = match self.stage {
            Stage::Posted { done, size } if command.op == Op::READ => (What::Read, done, size),
            Stage::Posted { done, size } => (What::Write, done, size),
            Stage::Device { guess } => {
                (by_device::posting(command, atomics, guess), 0, by_device::WIDTH)
            }
            _ => return None,
        };
        let local = command.local.wrapping_add(done as usize);
        Some(Posting { tag: tag.0, what, local, size, remote: remote + done, key })
    }

    /// The owner is to be asked for what is left.
    fn leave_to_owner(&mut self) {
        self.stage = match self.stage {
            Stage::Posted { done, .. } => Stage::Data { done },
            stage => stage,
        };
    }

    /// Takes in the end of what was posted. Some: the command has ended.
    fn ended(&mut self, end: Reply, (most, atomics): (u64, u64)) -> Option<Status> {
        if end.status != Status::OK {
            return Some(end.status);
        }
        let (done, size) = match self.stage {
            Stage::Posted { done, size } => (done, size),
            Stage::Device { guess } => return self.changed(guess, end.result, atomics),
            _ => return None,
        };
        let (done, all) = (done + size, self.command.size);
        self.stage = match self.command.op {
            _ if done < all => Stage::Posted { done, size: (all - done).min(most) },
            // A signal is its owner's to change, who wakes those that wait for it; the data is seen
            // there by now.
            Op::WRITE_SIGNAL => Stage::Word,
            _ => return Some(Status::OK),
        };
        self.sent = false;
        None
    }

    /// An adapter has fetched what the word was.
    fn changed(&mut self, guess: u64, fetched: u64, atomics: u64) -> Option<Status> {
        let command = &self.command;
        if let Some(guess) = by_device::again(command, atomics, guess, fetched) {
            (self.stage, self.sent) = (Stage::Device { guess }, false);
            return None;
        }
        // SAFETY: the user vouches for the result's place until the completion fires.
        unsafe { atomic::deliver(command.local, command.kind, fetched) };
        Some(Status::OK)
    }
}

impl LaneState {
    /// Puts an operation behind those that wait to be posted to the same peer.
    pub(super) fn gather(&mut self, tag: Tag) {
        if let Some(operation) = self.slots.get_mut(tag) {
            self.posts.put(operation.command.peer, |line| line.push_back(tag));
        }
    }

    /// Posts what waits for it, as far as there is room; returns how much that was.
    pub(in crate::engine) fn post_gathered(&mut self, routes: &Routes) -> usize {
        if self.posts.is_empty() {
            return 0;
        }
        let (mut posts, mut posted) = (std::mem::take(&mut self.posts), 0);
        posts.serve(|line| {
            let (count, all) = self.post_line(routes, line);
            posted += count;
            all
        });
        debug_assert!(self.posts.is_empty(), "nothing is gathered while it is posted");
        self.posts = posts;
        posted
    }

    /// Whether all that was not sent waits for a network that has something of this rank's: its
    /// end, which rings, makes room.
    pub(super) fn waits_for_wire(&self) -> bool {
        let gathered: usize = self.posts.waiting().map(|(_, line)| line.len()).sum();
        gathered == self.unsent && self.slots.iter().any(|(_, it)| it.is_posted() && it.sent)
    }

    /// Posts the first operations for one peer: how many have left the line, and whether the next
    /// ones may, too.
    fn post_line(&mut self, routes: &Routes, line: &mut VecDeque<Tag>) -> (usize, bool) {
        let mut batch = std::mem::take(&mut self.batch);
        let (peer, all) = self.fill(routes, line, &mut batch);
        let without = (!all).then_some(Stopped::NeedsOwner);
        let (count, stopped) = match peer {
            Some(peer) if routes.is_dead(peer) => (0, Stopped::Failed(Status::ERR_PEER_DEAD)),
            // SAFETY: the user vouches for the local sides until the completions fire; what an
            // operation has copied lives as long as it, or as the wire (see keep_bytes()).
            Some(peer) => unsafe { routes.fabric().post_remote(peer, &batch) },
            None => (0, Stopped::No),
        };
        batch.clear();
        self.batch = batch;
        for tag in line.drain(..count) {
            if let Some(operation) = self.slots.get_mut(tag) {
                operation.sent = true;
                self.unsent -= 1;
            }
        }
        let stopped = if stopped == Stopped::No { without.unwrap_or(stopped) } else { stopped };
        match stopped {
            Stopped::No => return (count, true),
            Stopped::Later => return (count, false),
            Stopped::NeedsOwner | Stopped::Failed(_) => {}
        }
        let Some(tag) = line.pop_front() else { return (count, true) };
        match stopped {
            Stopped::Failed(status) => self.end(routes, tag, status),
            _ => self.ask_owner(routes, tag),
        }
        (count + 1, true)
    }

    /// Fills a batch with the first operations of a line: for which peer they are, and whether the
    /// next one can be posted too. One that has ended meanwhile cannot, as one that only the owner
    /// can do.
    fn fill(
        &mut self,
        routes: &Routes,
        line: &VecDeque<Tag>,
        batch: &mut Vec<Posting>,
    ) -> (Option<u32>, bool) {
        let first = line.iter().find_map(|tag| Some(self.slots.get_mut(*tag)?.command.peer));
        let Some(peer) = first else { return (None, false) };
        let (fabric, resolver) = (routes.fabric(), routes.fabric().resolver(peer));
        let atomics = fabric.device_atomics();
        let all = line.iter().take(BATCH).all(|tag| {
            let operation = self.slots.get_mut(*tag).filter(|it| it.is_posted());
            let posting = operation.and_then(|it| it.posting(&resolver, atomics, *tag));
            batch.extend(posting);
            posting.is_some()
        });
        (Some(peer), all)
    }

    fn ask_owner(&mut self, routes: &Routes, tag: Tag) {
        let Some(operation) = self.slots.get_mut(tag) else { return };
        if operation.command.op == Op::ATOMIC {
            // The region has ended, as its owner has said meanwhile.
            return self.end(routes, tag, Status::ERR_KEY);
        }
        operation.leave_to_owner();
        // It counts as unsent already.
        self.unsent -= 1;
        self.send_or_wait(routes, tag);
    }

    /// What was posted has ended.
    pub(in crate::engine) fn wire_ended(&mut self, routes: &Routes, end: Reply) {
        let (tag, fabric) = (Tag(end.tag), routes.fabric());
        let can = (fabric.remote_most(), fabric.device_atomics());
        // A number that fits nothing, or not now, is none of this rank's.
        let Some(operation) = self.slots.get_mut(tag).filter(|it| it.sent && it.is_posted()) else {
            return;
        };
        match operation.ended(end, can) {
            Some(status) => {
                self.end(routes, tag, status);
                self.ask_again(routes);
            }
            None => self.send_or_wait(routes, tag),
        }
    }
}
